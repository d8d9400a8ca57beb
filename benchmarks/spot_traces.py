"""Plays the layouts of the load line on traces of spot capacity: what each costs, and how often it breaks a promise.

A workload is spread over on-demand and spot groups. Each open group runs its pods on one pool, and is lost with it: then
its pods are missing for the window, and their replacements stand on the groups that are still open, else on on-demand. A
group opens again when a pool of it has had capacity for half an hour, or for ten minutes where the window is nothing. One
pod moves in five minutes. Rates are learned as the product learns them: from reclaims of pools that are held, and from
the hours for which they are held.
"""

from __future__ import annotations

import json
from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from itertools import chain
from pathlib import Path
from random import Random
from typing import Final

from plimsoll.domain.capacity import StartWindow
from plimsoll.domain.kubernetes import Ref
from plimsoll.domain.placement.layout_choice import ChosenLayout, choose_layout
from plimsoll.domain.placement.load_line import (
    MISSED,
    MOST_SPOT_GROUPS,
    SPOT_PRICE,
    LossWindow,
    SpotGroup,
    lines,
    load_line,
    standing_line,
    tail,
    units_of,
)
from plimsoll.domain.placement.promises import Promise, PromisedWorkload
from plimsoll.domain.placement.spread_groups import NO_GROUPS, Layout
from plimsoll.domain.spot import (
    NEVER_SEEN,
    CapacityPool,
    HeldPool,
    PoolEvent,
    PoolEventKind,
    reclaim_rates,
)
from plimsoll_simulation.fake_aws.spot_market import Change, MarketPool, Trace

HOUR: Final = 3600
DAY: Final = 24 * HOUR
TICK: Final = 300
"""Seconds: so often groups open and a pod moves."""
STOOD: Final = 600
STOOD_FOR_LATE: Final = 1800
START: Final = datetime(2026, 1, 1, tzinfo=UTC)
ALL_ON_DEMAND: Final = Layout(1, 0)


@dataclass(frozen=True, slots=True)
class Recording:
    """Traces of some pools over the same time."""

    name: str
    trace: Trace
    days: float


def recordings(folder: Path, gaps: Mapping[str, float]) -> Iterator[Recording]:
    """Yield the recordings of a folder: one folder for each, with a JSON file for each pool, `<zone>_<type>.json`.

    Args:
        folder: where they are.
        gaps: name of a recording -> the seconds between two of its points, where its files tell another number.
    """
    for each in sorted(path for path in folder.iterdir() if path.is_dir()):
        trace: dict[MarketPool, Sequence[Change]] = {}
        seconds = 0.0
        for file in sorted(each.glob("*.json")):
            zone, _, kind = file.stem.partition("_")
            told = json.loads(file.read_text())
            gap = gaps.get(each.name) or float(told["metadata"]["gap_seconds"])
            region = zone.rstrip("abcdef")
            trace[MarketPool(f"{region} {kind}", zone)] = [*_changes(told["data"], gap)]
            seconds = len(told["data"]) * gap
        if trace:
            yield Recording(each.name, trace, seconds / DAY)


def _changes(counts: Sequence[int], gap: float) -> Iterator[Change]:
    before = None
    for index, count in enumerate(counts):
        up = count > 0
        if up is not before:
            yield Change(int(index * gap), up=up)
        before = up


@dataclass(slots=True)
class _Group:
    """A spot group: whole families, or zones where there are fewer families than groups."""

    pools: tuple[MarketPool, ...]
    pool: MarketPool | None = None
    """On which its pods stand; None: it is closed."""
    pods: int = 0


@dataclass(frozen=True, slots=True)
class Missing:
    """Pods that are missing for some seconds."""

    since: float
    until: float
    pods: int


@dataclass
class Played:
    """One workload on one trace."""

    trace: Trace
    replicas: int
    window: LossWindow
    layout: Layout
    seed: int = 0
    missing: list[Missing] = field(default_factory=list)
    reclaims: int = 0
    spot_seconds: float = 0.0
    """Of all pods together."""

    def __post_init__(self) -> None:
        """Stand on on-demand before anything is known of spot."""
        self._random = Random(self.seed)
        self._groups = [_Group(pools) for pools in dealt(list(self.trace))]
        self._on_demand = self.replicas
        self._up: dict[MarketPool, int | None] = dict.fromkeys(self.trace)
        self._events: list[PoolEvent] = []
        self._held: dict[MarketPool, HeldPool] = {}
        self._coming = sorted(
            (change.second, pool, change.up)
            for pool, changes in self.trace.items()
            for change in changes
        )
        self._next = self._second = 0
        late = self.window.after_notice_seconds > 0
        self._stands_after = STOOD_FOR_LATE if late else STOOD

    def play(self, until: int) -> None:
        """Let time pass up to a second."""
        for second in range(self._second, until, TICK):
            self._change(second)
            if second % HOUR == 0:
                self._count(second)
            self._open(second)
            self._move()
            self.spot_seconds += TICK * (self.replicas - self._on_demand)
            self._second = second + TICK

    @property
    def seconds(self) -> int:
        """How long it has been played."""
        return self._second

    def cost(self) -> float:
        """Return what it has cost, of all replicas on on-demand."""
        spot = self.spot_seconds / (self.replicas * max(1, self._second))
        return 1 - (1 - SPOT_PRICE) * spot

    def standing(self) -> list[tuple[SpotGroup, int]]:
        """Return the open groups with their rates as they are known now, and how many pods each runs."""
        rates = reclaim_rates(self._events, self._held.values(), self._now(self._second))
        found = []
        for group in self._groups:
            if group.pool is not None:
                rate = rates.get(_pool(group.pool))
                per_hour = NEVER_SEEN if rate is None else rate.per_hour
                name = str(group.pool)
                known = SpotGroup(name=name, family=group.pool.family, per_hour=per_hour)
                found.append((known, group.pods))
        return found

    def day(self, keep: Sequence[int]) -> Mapping[int, float]:
        """Play a day, and return by promise what the load line predicts of it, hour by hour, as promises are scored."""
        said = dict.fromkeys(keep, 0.0)
        for _ in range(24):
            standing = units_of([each for each in self.standing() if each[1]])
            for wanted in keep:
                said[wanted] += tail(standing, self.window, self.replicas - wanted) / 24
            self.play(self._second + HOUR)
        return said

    def choose(
        self, promise: Promise, window: StartWindow, before: ChosenLayout | None
    ) -> ChosenLayout | None:
        """Take the layout that the product would take of a promise, by what is known now and what was chosen before."""
        standing = self.standing()
        spot, wanted = tuple(group for group, _ in standing), promise.wanted(self.replicas)
        found = tuple(lines(self.replicas, wanted, spot, self.window))
        promised = PromisedWorkload(
            workload=Ref("Deployment", "default", "web"),
            replicas=self.replicas,
            wanted=wanted,
            declared=self.replicas,
            promise=promise,
            window=window,
            layouts=found,
            line=load_line(found, 0, promise.broken),
            hard=0,
            beneath=NO_GROUPS,
            spot=spot,
            stands=standing_line(self.replicas, wanted, standing, self.window),
        )
        chosen = choose_layout(promised, before, None, self._now(self._second))
        if chosen is not None:
            self.layout = chosen.layout
        return chosen

    def below(self, wanted: int, since: float = 0, until: float | None = None) -> float:
        """Return for how many seconds fewer were Ready than wanted."""
        until = self._second if until is None else until
        change: dict[float, int] = defaultdict(int)
        for one in self.missing:
            first, last = max(since, one.since), min(until, one.until)
            if first < last:
                change[first] += one.pods
                change[last] -= one.pods
        total, missing, before = 0.0, 0, since
        for at in sorted(change):
            if missing > self.replicas - wanted:
                total += at - before
            missing, before = missing + change[at], at
        return total

    @staticmethod
    def _now(second: float) -> datetime:
        return START + timedelta(seconds=second)

    def _change(self, until: int) -> None:
        """Let pools come and go up to a second."""
        last = bisect_right(self._coming, until, key=lambda each: each[0])
        for second, pool, up in self._coming[self._next : last]:
            self._up[pool] = second if up else None
            for group in self._groups:
                if not up and group.pool == pool:
                    self._lose(group, pool, second)
        self._next = last

    def _lose(self, group: _Group, pool: MarketPool, second: int) -> None:
        kind = PoolEventKind.INTERRUPTION
        self._events.append(PoolEvent(pool=_pool(pool), kind=kind, at=self._now(second)))
        pods, group.pods, group.pool = group.pods, 0, None
        if not pods:
            return
        self.reclaims += 1
        noticed = second + self.window.after_notice_seconds
        unnoticed = sum(self._random.random() < MISSED for _ in range(pods))
        self.missing.append(Missing(second, noticed, pods))
        self.missing.append(
            Missing(noticed, second + self.window.without_notice_seconds, unnoticed)
        )
        for _ in range(pods):
            self._place()

    def _place(self) -> None:
        """Put a replacement on the emptiest group of the spread; without a spread on on-demand, which is asked first."""
        groups = self._spread() if self.layout.on_demand_groups else []
        least = min(groups, key=lambda group: group.pods, default=None)
        each = self._on_demand / max(1, self.layout.on_demand_groups)
        if least is None or each <= least.pods:
            self._on_demand += 1
        else:
            least.pods += 1

    def _spread(self) -> list[_Group]:
        """Return the open spot groups over which pods are spread."""
        open_groups = [group for group in self._groups if group.pool is not None]
        return open_groups[: self.layout.spot_groups]

    def _open(self, second: int) -> None:
        for group in self._groups:
            if group.pool is not None:
                continue
            since = {pool: at for pool in group.pools if (at := self._up[pool]) is not None}
            oldest = min(since, key=lambda pool: (since[pool], pool), default=None)
            if oldest is not None and second - since[oldest] >= self._stands_after:
                group.pool = oldest
                now = self._now(second)
                before = self._held.get(oldest)
                hours = 0.0 if before is None else before.hours
                self._held[oldest] = HeldPool(pool=_pool(oldest), since=now, hours=hours, at=now)

    def _count(self, second: int) -> None:
        """Count an hour of each pool that is held."""
        now = self._now(second)
        for group in self._groups:
            row = None if group.pool is None else self._held.get(group.pool)
            if group.pool is not None and row is not None and row.at < now:
                weight = 0.5 ** ((now - row.at) / timedelta(days=7))
                hours = row.hours * weight + 1
                self._held[group.pool] = HeldPool(
                    pool=row.pool, since=row.since, hours=hours, at=now
                )

    def _move(self) -> None:
        """Move one pod towards an even spread; without a spread, or on no group of it, from on-demand to spot."""
        groups = self._spread()
        outside = next((g for g in self._groups if g.pods and g not in groups), None)
        if outside is not None:
            outside.pods -= 1
            self._place()
            return
        if not groups:
            return
        least = min(groups, key=lambda group: group.pods)
        most = max(groups, key=lambda group: group.pods)
        parts = self.layout.on_demand_groups
        each = self._on_demand / parts if parts else 0
        if (parts and each - 1 > least.pods) or (not parts and self._on_demand):
            self._on_demand -= 1
            least.pods += 1
        elif parts and most.pods - 1 > each:
            most.pods -= 1
            self._on_demand += 1
        elif most.pods - 1 > least.pods:
            most.pods -= 1
            least.pods += 1


def dealt(pools: Sequence[MarketPool]) -> list[tuple[MarketPool, ...]]:
    """Return the pools of each spot group: whole families, or zones where there are fewer families than groups."""
    families = sorted({pool.family for pool in pools})
    parts = [[pool for pool in sorted(pools) if pool.family == family] for family in families]
    if len(families) < MOST_SPOT_GROUPS:
        parts = [[pool] for pool in sorted(pools)]
    count = min(MOST_SPOT_GROUPS, len(parts))
    return [tuple(chain.from_iterable(parts[first::count])) for first in range(count)]


def _pool(pool: MarketPool) -> CapacityPool:
    return CapacityPool(pool.family, pool.zone, "spot")
