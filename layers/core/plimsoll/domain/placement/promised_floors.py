"""The layouts of promised workloads as floors: what is chosen for them, what stands where nothing can be, and what is told."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Final

from plimsoll.domain.capacity import StartWindows
from plimsoll.domain.errors import BadInput
from plimsoll.domain.kubernetes import (
    AUTO_FLOOR,
    KEEP_READY,
    MIN_ON_DEMAND,
    ClusterEvent,
    OwnerKind,
    Ref,
    Workload,
    about_workload,
)
from plimsoll.domain.observation import Observation, chosen_workloads
from plimsoll.domain.placement.impossible_promises import why_not_possible
from plimsoll.domain.placement.injection import Injected, layout_told
from plimsoll.domain.placement.layout_choice import ChosenLayout, choose_layout
from plimsoll.domain.placement.load_line import NO_FLOOR
from plimsoll.domain.placement.on_demand import FloorConstraint, OnDemandFloor, stated_floor
from plimsoll.domain.placement.promises import (
    Promise,
    PromisedWorkload,
    promised_workloads,
    stated_promise,
)
from plimsoll.domain.placement.spread_groups import NO_GROUPS, Layout
from plimsoll.domain.placement.standing_group import standing_groups
from plimsoll.domain.spot import CapacityPool, PoolRate

MOST_CHOSEN: Final = 1_000
"""For how many workloads a run computes the layouts: those of others stand, and their turn comes in another run."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """What owners promise of the workloads of a cluster."""

    promises: Mapping[Ref, Promise]
    unread: tuple[ClusterEvent, ...]
    """What owners wrote that is no promise, as it is told on the objects."""
    ignored: tuple[ClusterEvent, ...] = ()
    """The same of promises on what none is made of."""
    floors: Mapping[str, str]
    """Namespace -> the floor that its annotation asks for."""

    @property
    def workloads(self) -> Collection[Ref]:
        """The workloads whose layouts follow from promises, or did until their owners wrote what is none."""
        return {*self.promises, *(event.about for event in self.unread)}

    def hinge_on_starts(self, seen: Observation) -> bool:
        """Whether any layout or floor follows from how long replacements take to be Ready."""
        default = seen.policy.min_on_demand
        asked = (stated_floor(workload, self.floors, default) for workload in seen.workloads)
        return bool(self.promises) or AUTO_FLOOR in asked

    def turn(self, now: datetime) -> Sequence[Ref]:
        """Return the workloads whose layouts are computed now."""
        return chosen_workloads(self.promises, now, MOST_CHOSEN)


@dataclass(frozen=True, slots=True, kw_only=True)
class Choice:
    """The layout of a workload from now on, which counts once it is written."""

    workload: Workload
    promised: PromisedWorkload
    before: ChosenLayout | None
    after: ChosenLayout
    stood: Layout
    """What it has until then."""

    @property
    def event(self) -> ClusterEvent | None:
        """What its owner is told of a change."""
        layout, promised = self.after.layout, self.promised
        if layout == self.stood:
            return None
        line = promised.keeps(layout)
        told = about_workload(
            self.workload,
            "LineChanged",
            f"{self.workload.ref}: its layout is {layout} from now on instead of {self.stood}: of {promised.replicas} "
            f"replicas at least {line.floor} stand on on-demand, and fewer than {promised.wanted} are Ready for "
            f"{line.minutes_a_month:.2g} min a month (promised: {promised.promise})",
        )
        return replace(told, warning=False, cause=f"{layout}{self.after.at}")


@dataclass(frozen=True, slots=True, kw_only=True)
class ChosenLayouts:
    """The layouts that count in a placement run."""

    layouts: Mapping[Ref, Layout] = field(default_factory=dict)
    problems: tuple[ClusterEvent, ...] = ()
    events: tuple[ClusterEvent, ...] = ()
    """What was chosen, as it is told on the objects."""
    promised: tuple[PromisedWorkload, ...] = ()
    """The workloads whose layouts were computed in this run."""


NOTHING_CHOSEN: Final = ChosenLayouts()


def asked_promises(
    seen: Observation, promises: Mapping[str, str], floors: Mapping[str, str]
) -> Asked:
    """Return what owners promise.

    Args:
        seen: one observation of the cluster, with its policy.
        promises: namespace -> the promise that its annotation states.
        floors: namespace -> the floor that its annotation asks for.
    """
    found: dict[Ref, Promise] = {}
    unread, ignored = [], []
    for workload in seen.workloads:
        if workload.ref.kind != OwnerKind.DEPLOYMENT and KEEP_READY in workload.annotations:
            why = (
                f"{workload.ref}: {KEEP_READY} is for Deployments: a member of a StatefulSet stops before the next "
                f"starts, so that a notice helps nothing. State {MIN_ON_DEMAND}"
            )
            ignored.append(about_workload(workload, "KeepReadyNotSupported", why))
        try:
            promise = stated_promise(workload, promises, seen.policy.keep_ready)
        except BadInput as error:
            unread.append(about_workload(workload, "KeepReadyNotUnderstood", str(error)))
            continue
        if promise is not None:
            found[workload.ref] = promise
    return Asked(promises=found, unread=tuple(unread), ignored=tuple(ignored), floors=floors)


def layouts_there(
    asked: Asked, remembered: Mapping[Ref, ChosenLayout], told: Injected
) -> Mapping[Ref, Layout]:
    """Return the layouts that workloads have: as they were chosen last, else as the admission policy is told."""
    found = {}
    for ref in asked.workloads:
        chosen = remembered.get(ref)
        layout = layout_told(told, ref) if chosen is None else chosen.layout
        if layout is not None:
            found[ref] = layout
    return found


def choices_of(
    asked: Asked,
    windows: StartWindows,
    rates: Mapping[CapacityPool, PoolRate],
    remembered: Mapping[Ref, ChosenLayout],
    told: Injected,
) -> Iterator[Choice]:
    """Yield what is chosen for each promised workload whose turn it is.

    Args:
        asked: what owners promise.
        windows: those of the observed cluster.
        rates: of its capacity pools.
        remembered: the layouts that were chosen last.
        told: what the admission policy is told.
    """
    seen, now = windows.seen, windows.now
    turn = {*asked.turn(now)}
    there = layouts_there(asked, {}, told)
    for promised in promised_workloads(
        lambda workload: asked.promises[workload.ref] if workload.ref in turn else None,
        windows,
        standing_groups(seen, rates),
        asked.floors,
    ):
        ref = promised.workload
        before = remembered.get(ref)
        # A layout that the floor explains tells of no earlier choice: this may be the first one.
        lost = None if there.get(ref) == promised.beneath else there.get(ref)
        after = choose_layout(promised, before, lost, now)
        if after is not None:
            yield Choice(
                workload=seen.workload[ref],
                promised=promised,
                before=before,
                after=after,
                stood=before.layout if before is not None else there.get(ref, NO_FLOOR),
            )


def chosen_layouts(
    asked: Asked,
    there: Mapping[Ref, Layout],
    choices: Sequence[Choice],
    unwritten: Collection[Ref] = (),
) -> ChosenLayouts:
    """Return the layouts that count.

    Args:
        asked: what owners promise.
        there: what workloads have.
        choices: what is chosen.
        unwritten: workloads whose choice could not be written: what they have stands.
    """
    written = [choice for choice in choices if choice.workload.ref not in unwritten]
    impossible = (why_not_possible(choice.workload, choice.promised) for choice in choices)
    return ChosenLayouts(
        layouts={**there} | {choice.workload.ref: choice.after.layout for choice in written},
        problems=(*asked.unread, *asked.ignored, *filter(None, impossible)),
        events=tuple(event for choice in written if (event := choice.event) is not None),
        promised=tuple(choice.promised for choice in choices),
    )


def with_layout(floor: OnDemandFloor, layout: Layout) -> OnDemandFloor:
    """Return the floor of a workload with a layout that was chosen for it; a hard floor that asks for more stands."""
    way = FloorConstraint.SPREAD if layout.spot_groups else FloorConstraint.AFFINITY
    kept = layout.floor(floor.replicas)
    if kept < max(1, floor.keep):
        return floor
    return replace(
        floor,
        keep=kept,
        way=way,
        layout=layout if layout.spot_groups else NO_GROUPS,
        auto=True,
        reason=f"the layout {layout} was chosen for what is promised",
    )
