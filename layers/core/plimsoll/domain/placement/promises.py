"""Promises of availability, and the load lines of the Deployments of a cluster under one of them."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Final, Self, override

from plimsoll.domain.capacity import StartWindow, StartWindows
from plimsoll.domain.errors import BadInput
from plimsoll.domain.kubernetes import (
    KEEP_READY,
    KUBE_SYSTEM,
    OwnerKind,
    Ref,
    Workload,
    resolve_count,
)
from plimsoll.domain.observation import Observation
from plimsoll.domain.placement.load_line import (
    ALL_ON_DEMAND,
    LoadLine,
    LossWindow,
    SpotGroup,
    line_of,
    lines,
    load_line,
    standing_line,
)
from plimsoll.domain.placement.on_demand import FloorConstraint, floor_of
from plimsoll.domain.placement.spread_groups import (
    NO_GROUPS,
    SINGLE_REPLICA,
    Layout,
)
from plimsoll.domain.placement.standing_group import StandingGroup
from plimsoll.domain.placement.volume_zones import volumes_on_both
from plimsoll.domain.reports import Judged

USUAL_PERCENT: Final = 99.9
"""Of the time, where a promise names none: all but 43.8 minutes of a month."""
_ALL: Final = 100
_FORM: Final = re.compile(r"([0-9]{1,9}%?)(?:\s*,\s*([0-9]{1,2}(?:\.[0-9]{1,6})?|100)\s*%)?")


@dataclass(frozen=True, slots=True, kw_only=True)
class Promise:
    """How many replicas are to be Ready, and for what share of the time."""

    ready: int | str
    percent: float = USUAL_PERCENT

    @classmethod
    def parse(cls, text: str) -> Self:
        """Read a promise such as `60%`, `6` or `60%, 99.7%`.

        Raises:
            BadInput: it has another form.
        """
        found = _FORM.fullmatch(text.strip())
        if found is None:
            raise BadInput(
                f"{text!r} is no promise: name a number of replicas or a share, and if you like a share of the time, "
                'as in "60%" or "60%, 99.7%"'
            )
        ready, percent = found.groups()
        if ready.endswith("%") and int(ready[:-1]) > _ALL:
            raise BadInput(f"{text!r} is no promise: {ready} is more than all replicas")
        return cls(
            ready=ready if ready.endswith("%") else int(ready),
            percent=USUAL_PERCENT if percent is None else float(percent),
        )

    @override
    def __str__(self) -> str:
        """Return it as it can be read again."""
        return f"{self.ready}, {f'{self.percent:.6f}'.rstrip('0').rstrip('.')}%"

    @property
    def broken(self) -> float:
        """The share of the time in which fewer may be Ready."""
        return 1 - self.percent / 100

    def wanted(self, replicas: int) -> int:
        """Return how many of so many replicas are to be Ready."""
        return resolve_count(self.ready, replicas, round_up=True)


def stated_promise(
    workload: Workload, namespaces: Mapping[str, str] | None = None, default: str = "0"
) -> Promise | None:
    """Return what is promised of a workload: by itself, else by its namespace, else by its cluster; None: nothing.

    Args:
        workload: only of Deployments anything is promised.
        namespaces: namespace -> what its annotation says.
        default: what the cluster's policy says, but not of kube-system.

    Raises:
        BadInput: what the owner wrote is no promise.
    """
    ref = workload.ref
    if ref.kind != OwnerKind.DEPLOYMENT:
        return None
    default = "0" if ref.namespace == KUBE_SYSTEM else default
    said = workload.annotations.get(KEEP_READY) or (namespaces or {}).get(ref.namespace, default)
    try:
        promise = Promise.parse(said)
    except BadInput as error:
        raise BadInput(f"{ref}: the annotation {KEEP_READY}: {error}") from error
    return promise if promise.wanted(_ALL) else None


def understood_promise(
    workload: Workload, namespaces: Mapping[str, str], default: str
) -> Promise | None:
    """Return the same as `stated_promise`, and None also where the owner wrote no promise: the plan names that."""
    try:
        return stated_promise(workload, namespaces, default)
    except BadInput:
        return None


@dataclass(frozen=True, slots=True, kw_only=True)
class PromisedWorkload:
    """What every layout of a Deployment keeps of a promise, and the cheapest that keeps it."""

    workload: Ref
    replicas: int
    """The fewest that it may have: those that its autoscaler leaves at least."""
    wanted: int
    """How many of these are to be Ready."""
    declared: int
    """How many it is to have now."""
    promise: Promise
    window: StartWindow
    layouts: tuple[LoadLine, ...]
    line: LoadLine
    hard: int
    """How many replicas its floor keeps on on-demand, whatever the layout."""
    beneath: Layout
    """The layout that this floor asks for."""
    spot: tuple[SpotGroup, ...]
    stands: LoadLine
    """As its pods stand now, of the declared replicas."""

    @property
    def wanted_now(self) -> int:
        """How many of the declared replicas are to be Ready."""
        return self.promise.wanted(self.declared)

    @property
    def kept(self) -> bool:
        """Whether the line keeps the promise: not where more are wanted than there are replicas."""
        return self.line.below <= self.promise.broken

    def keeps_hard_floor(self, layout: Layout) -> bool:
        """Whether a layout leaves as many replicas on on-demand as the hard floor asks for."""
        return layout.floor(self.replicas) >= self.hard

    def keeps(self, layout: Layout) -> LoadLine:
        """Return what a layout keeps, also one that nobody would choose now."""
        if layout.on_demand_groups == 0:  # without a constraint, whatever groups there were
            return self.layouts[0]
        for line in self.layouts:
            if line.layout == layout:
                return line
        lost = LossWindow.of(self.window)
        return line_of(layout, self.replicas, self.wanted, self.spot, lost)


def promised_workloads(
    promised: Callable[[Workload], Promise | None],
    windows: StartWindows,
    groups: tuple[StandingGroup, ...],
    namespaces: Mapping[str, str],
) -> Iterator[PromisedWorkload]:
    """Yield the Deployments of which something is promised, and whose pods tell how long they take to start.

    A floor that an owner states as a number or a share is kept beneath the line. StatefulSets are left out: of
    these a member stops before the next starts, so that a notice helps nothing.

    Args:
        promised: what is promised of a Deployment; None: nothing.
        windows: those of the observed cluster.
        groups: its spot groups.
        namespaces: namespace -> the floor that its annotation asks for.
    """
    seen, spot = windows.seen, [standing.group for standing in groups]
    on_both = volumes_on_both(seen)
    for workload in seen.workloads:
        replicas = workload.replicas if workload.min_replicas is None else workload.min_replicas
        if workload.ref.kind != OwnerKind.DEPLOYMENT or not min(replicas, workload.replicas):
            continue
        promise = promised(workload)
        window = None if promise is None else windows.of(workload.ref)
        if promise is None or window is None:
            continue
        wanted, lost = promise.wanted(replicas), LossWindow.of(window)
        hard, beneath = _floor_beneath(workload, namespaces, seen, on_both)
        layouts = lines(replicas, wanted, spot, lost, beneath=beneath)
        if workload.scheduling.claims:
            # Its volumes live in one zone, where a group may have no node.
            layouts = [
                each
                for each in layouts
                if each.layout == beneath
                or 0 in {each.layout.on_demand_groups, each.layout.spot_groups}
            ]
        yield PromisedWorkload(
            workload=workload.ref,
            replicas=replicas,
            wanted=wanted,
            declared=workload.replicas,
            promise=promise,
            window=window,
            layouts=tuple(layouts),
            line=load_line(layouts, hard, promise.broken),
            hard=hard,
            beneath=beneath,
            spot=tuple(spot),
            stands=_standing(seen, workload, promise, groups, lost),
        )


def _floor_beneath(
    workload: Workload,
    namespaces: Mapping[str, str],
    seen: Observation,
    volumes_on_both: Callable[[Workload], bool],
) -> tuple[int, Layout]:
    """Return how many replicas the floor of a workload keeps on on-demand whatever the load line says, and its layout.

    The number that an owner leaves to Plimsoll is that of the load line. A single replica that may stand on spot has no
    floor beneath its line.
    """
    try:
        floor = floor_of(
            workload,
            namespaces=namespaces,
            default=seen.policy.min_on_demand,
            volumes_on_both=volumes_on_both,
        )
    except BadInput:  # the plan names it as a problem
        return 0, NO_GROUPS
    if floor.way is FloorConstraint.AFFINITY:
        return floor.keep, ALL_ON_DEMAND
    if floor.layout == SINGLE_REPLICA:
        return 0, NO_GROUPS
    return floor.keep, floor.layout


def _standing(
    seen: Observation,
    workload: Workload,
    promise: Promise,
    groups: tuple[StandingGroup, ...],
    lost: LossWindow,
) -> LoadLine:
    pods = seen.of_workload.get(workload.ref, ())
    there = [pod.node for pod in pods if pod.deleting is None and not pod.released]
    counts = [
        (each.group, found)
        for each in groups
        if (found := sum(node in each.nodes for node in there))
    ]
    return standing_line(workload.replicas, promise.wanted(workload.replicas), counts, lost)


def judged(seen: Observation, promised: Iterable[PromisedWorkload]) -> Iterator[Judged]:
    """Yield workloads of which something is promised, as their score takes them: as they stand now."""
    for each in promised:
        pods = seen.of_workload.get(each.workload, ())
        yield Judged(
            workload=str(each.workload),
            below=each.stands.below,
            wanted=each.wanted_now,
            ready_since=[pod.ready_since or pod.created for pod in pods if pod.serving],
        )
