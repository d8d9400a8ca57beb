"""The load line: how much of a workload may stand on spot, so that it keeps what is promised of it.

Pods that stand on one spot pool are lost together, and are missing until their replacements are Ready. Losses come at
random, so at a random time a unit of pods is missing with the probability that one came within the window: only the
mean window counts, whatever its distribution. The distribution of all missing pods is that of each unit, folded into
those before it. Of a pool's losses one part takes the pool alone, one the whole family, and one all spot of the region:
these common shocks are units of their own.

Four layouts are compared. The line is the cheapest that keeps the promise, and the floor that the owner states.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from math import expm1, fsum, sumprod
from typing import Final, NamedTuple

from plimsoll.domain.capacity import StartWindow
from plimsoll.domain.placement.spread_groups import LAYOUTS, NO_GROUPS, Layout

MISSED: Final = 0.1
"""The share of nodes that go without a notice. It is assumed: nobody has measured it."""
DETECTED_SECONDS: Final = 10
"""How long after the loss of a node without a notice it is known."""
FAMILY_SHARE: Final = 0.20
"""Of the losses of a pool, those that take all pools of its family in the region."""
REGION_SHARE: Final = 0.05
"""Of the losses of a pool, those that take all spot of the region."""
SPOT_PRICE: Final = 0.35
"""What a pod on spot costs, of one on on-demand."""
MONTH_MINUTES: Final = 43_800.0

MOST_SPOT_GROUPS: Final = 3
"""More groups make shallow losses more frequent, and deep ones hardly rarer."""
_ON_DEMAND_GROUPS: Final = (1, 3)
NO_FLOOR: Final = Layout(0, MOST_SPOT_GROUPS)
"""Without a constraint, however many spot groups there are."""
_NEARLY_ALWAYS: Final = 0.95
_MOST_EVENTS: Final = 10_000
ALL_ON_DEMAND: Final = Layout(1, 0)
"""No replica stands on spot."""
_NEGLIGIBLE: Final = 1e-20
"""Of a binomial distribution, relative to its peak: what is left out of it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LossWindow:
    """For how long a lost pod is missing."""

    after_notice_seconds: float
    """Where a notice came before."""
    without_notice_seconds: float
    """Where there was none; never shorter."""

    @classmethod
    def of(cls, window: StartWindow) -> LossWindow:
        """Return it for a workload whose replacements have this window."""
        return cls(
            after_notice_seconds=window.missing,
            without_notice_seconds=DETECTED_SECONDS + window.ready_after,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class SpotGroup:
    """A group of spot nodes that can run a share of a workload, and is lost as a whole."""

    name: str
    family: str
    per_hour: float
    """Its reclaims an hour."""


class Unit(NamedTuple):
    """Pods that are lost together."""

    pods: int
    per_hour: float


@dataclass(frozen=True, slots=True, kw_only=True)
class LoadLine:
    """What one layout of a workload keeps, and what it costs."""

    layout: Layout
    floor: int
    """Replicas on on-demand: what stays if all spot goes at once. While a group is closed they may be fewer, but never
    fewer than `Layout.floor` says, by which hard floors are kept."""
    largest: int
    """Replicas of the largest spot group."""
    cost: float
    """Of all replicas on on-demand."""
    below: float
    """The probability that fewer are Ready than promised, at a random time."""

    @property
    def minutes_a_month(self) -> float:
        """For how long fewer are Ready than promised."""
        return self.below * MONTH_MINUTES


def tail(units: Sequence[Unit], window: LossWindow, slack: int, missed: float = MISSED) -> float:
    """Return the probability that more than `slack` pods are missing at a random time.

    After a loss, all pods of a unit are missing for the window after a notice. Of these, the pods whose nodes went
    without a notice are still missing until the longer window has passed.

    Args:
        units: what is lost together, each independent of the others.
        window: for how long a pod is missing.
        slack: how many pods may be missing; below 0 the promise is broken already.
        missed: the share of nodes that go without a notice.
    """
    if slack < 0:
        return 1.0
    missing = [1.0]
    for unit in units:
        if unit.pods > 0 and unit.per_hour > 0:
            missing = _folded(missing, unit, window, slack, missed)
    return max(0.0, 1.0 - fsum(missing))


def _folded(
    missing: list[float], unit: Unit, window: LossWindow, slack: int, missed: float
) -> list[float]:
    """Return the distribution of missing pods up to `slack`, with one unit more."""
    noticed, unnoticed = window.after_notice_seconds / 3600, window.without_notice_seconds / 3600
    whole = -expm1(-unit.per_hour * noticed)
    early = -expm1(-unit.per_hour * (unnoticed - noticed)) * (1 - whole)
    lost = [early * share for share in _binomial(unit.pods, missed)]
    lost[0] += 1 - whole - early
    if len(lost) > unit.pods:
        lost[-1] += whole
        whole = 0.0
    size = min(slack, len(missing) - 1 + unit.pods) + 1
    backwards, width = lost[::-1], len(lost)
    padded = [0.0] * (width - 1) + missing + [0.0] * (size - len(missing))
    found = [sumprod(padded[pods : pods + width], backwards) for pods in range(size)]
    if whole:
        for pods in range(unit.pods, size):
            found[pods] += whole * padded[width - 1 + pods - unit.pods]
    return found


@lru_cache(maxsize=256)
def _binomial(pods: int, share: float) -> Sequence[float]:
    """Return the probabilities of 0, 1, ... of so many pods; numbers far above the mean are negligible, and left out."""
    if share <= 0 or share >= 1:
        return [1.0] if share <= 0 else [0.0] * pods + [1.0]
    odds = share / (1 - share)
    peak = min(pods, int((pods + 1) * share))
    up, down = [1.0], [1.0]
    for number in range(peak, 0, -1):
        down.append(down[-1] * number / (odds * (pods - number + 1)))
    for number in range(peak, pods):
        up.append(up[-1] * odds * (pods - number) / (number + 1))
        if up[-1] < _NEGLIGIBLE:
            break
    weights = down[:0:-1] + up
    total = fsum(weights)
    return [weight / total for weight in weights]


def at_most(mean: float, reclaims: float) -> int:
    """Return how many events come at most in 19 of 20 such times.

    Their number is negative binomial: the rate is not known better than the reclaims tell that it was learnt from.

    Args:
        mean: how many are expected.
        reclaims: how many reclaims are remembered.
    """
    shape = 1 + reclaims
    share = mean / (mean + shape)
    probability = total = (1 - share) ** shape
    number = 0
    while total < _NEARLY_ALWAYS and number < _MOST_EVENTS:
        number += 1
        probability *= share * (shape + number - 1) / number
        total += probability
    return number


def units_of(groups: Sequence[tuple[SpotGroup, int]]) -> Sequence[Unit]:
    """Return what is lost together where groups run so many pods each: groups, families, and all spot.

    A family is lost as often as its share of the mean rate of its groups says, and all spot alike.
    """
    running = [(group, pods) for group, pods in groups if pods]
    if not running:
        return ()
    own = 1 - FAMILY_SHARE - REGION_SHARE
    families = sorted({group.family for group, _ in running})
    return [
        *(Unit(pods=pods, per_hour=own * group.per_hour) for group, pods in running),
        *(_shock([r for r in running if r[0].family == name], FAMILY_SHARE) for name in families),
        _shock(running, REGION_SHARE),
    ]


def _shock(running: Sequence[tuple[SpotGroup, int]], share: float) -> Unit:
    mean = sum(group.per_hour for group, _ in running) / len(running)
    return Unit(pods=sum(pods for _, pods in running), per_hour=share * mean)


def lines(
    replicas: int,
    wanted: int,
    spot: Sequence[SpotGroup],
    window: LossWindow,
    beneath: Layout = NO_GROUPS,
) -> Sequence[LoadLine]:
    """Return what each layout keeps that a workload can have, the cheapest first and all on on-demand last.

    Args:
        replicas: how many pods it has.
        wanted: how many of them are to be Ready.
        spot: the spot groups that there are; the calmest are taken.
        window: for how long a lost pod is missing.
        beneath: the layout that the hard floor asks for, which is one more to choose from.
    """
    most = min(MOST_SPOT_GROUPS, len(spot))
    layouts = [
        Layout(on_demand, groups)
        for on_demand in (0, *_ON_DEMAND_GROUPS)
        if (groups := min(most, replicas - on_demand)) > 0
    ]
    if spot and beneath in LAYOUTS and beneath.spot_groups and beneath not in layouts:
        layouts.append(beneath)
    found = [line_of(each, replicas, wanted, spot, window) for each in layouts]
    found.sort(key=lambda line: line.cost)
    return [*found, line_of(ALL_ON_DEMAND, replicas, wanted, spot, window)]


def line_of(
    layout: Layout,
    replicas: int,
    wanted: int,
    spot: Sequence[SpotGroup],
    window: LossWindow,
) -> LoadLine:
    """Return what one layout keeps over the spot groups that there are; the arguments are those of `lines`."""
    groups = sorted(spot, key=lambda group: (group.per_hour, group.name))[: layout.spot_groups]
    parts = layout.on_demand_groups + len(groups)
    # An uneven rest falls on spot: the spread does not keep it on on-demand.
    pods = [replicas // parts + (each < replicas % parts) for each in range(len(groups))]
    on_spot = sum(pods)
    return LoadLine(
        layout=layout,
        floor=replicas - on_spot,
        largest=max(pods, default=0),
        cost=(replicas - on_spot + SPOT_PRICE * on_spot) / replicas,
        below=tail(units_of([*zip(groups, pods, strict=True)]), window, replicas - wanted),
    )


def standing_line(
    replicas: int,
    wanted: int,
    there: Sequence[tuple[SpotGroup, int]],
    window: LossWindow,
    price: float = SPOT_PRICE,
) -> LoadLine:
    """Return what a workload keeps as it stands.

    Args:
        replicas: how many pods it is to have; those that stand in no spot group count as on on-demand.
        wanted: how many of them are to be Ready.
        there: how many stand in each spot group.
        window: for how long a lost pod is missing.
        price: what a pod on spot costs, of one on on-demand.
    """
    on_spot = sum(pods for _, pods in there)
    replicas = max(replicas, on_spot)
    floor = replicas - on_spot
    return LoadLine(
        layout=Layout(on_demand_groups=int(floor > 0), spot_groups=len(there)),
        floor=floor,
        largest=max((pods for _, pods in there), default=0),
        cost=(floor + price * on_spot) / replicas,
        below=tail(units_of(there), window, replicas - wanted),
    )


def load_line(found: Sequence[LoadLine], hard: int, broken: float) -> LoadLine:
    """Return the cheapest layout that keeps the promise and the hard floor.

    All on on-demand keeps every promise that the replicas can keep.

    Args:
        found: what `lines` says.
        hard: how many replicas must stand on on-demand, whatever the probability.
        broken: for what share of the time fewer may be Ready than wanted.
    """
    replicas = found[-1].floor
    keeping = [
        line for line in found if line.layout.floor(replicas) >= hard and line.below <= broken
    ]
    return min(keeping or [found[-1]], key=lambda line: (line.cost, line.below))
