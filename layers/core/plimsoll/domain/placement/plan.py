"""The placement plan of a cluster: floors, groups, and the labels that are to change."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import chain, islice
from math import inf
from operator import attrgetter

from plimsoll.domain.actions import LabelNode, SetDeletionCost, Step, Wave
from plimsoll.domain.capacity import StartWindows, slow_starts
from plimsoll.domain.errors import BadInput
from plimsoll.domain.kubernetes import MOST_NAMED, ClusterEvent, Pod, Ref, Workload, about_workload
from plimsoll.domain.observation import Observation
from plimsoll.domain.placement.injection import (
    NO_INJECTION,
    Injection,
    as_policy_knows,
    injections,
    is_injected,
    not_injected,
    spread_keys,
)
from plimsoll.domain.placement.node_labels import SpreadGroup, label_changes, spread_groups
from plimsoll.domain.placement.on_demand import (
    FloorConstraint,
    OnDemandFloor,
    deletion_costs,
    floor_of,
    problems_of,
)
from plimsoll.domain.placement.pending import waited
from plimsoll.domain.placement.promised_floors import NOTHING_CHOSEN, ChosenLayouts, with_layout
from plimsoll.domain.placement.rebalancing import Moves, plan_moves, why_not_now
from plimsoll.domain.placement.reserve import Loss, losses
from plimsoll.domain.placement.spot_return import NO_RETURN, SpotReturn
from plimsoll.domain.placement.spread_groups import (
    SINGLE_REPLICA,
    Layout,
    on_demand_group,
)
from plimsoll.domain.placement.status import FloorStatus, lacks, status_of
from plimsoll.domain.placement.unevenness import uneven
from plimsoll.domain.placement.volume_zones import volumes_on_both


@dataclass(frozen=True, slots=True, kw_only=True)
class PlacementPlan:
    """What a placement run would do, and what it found."""

    steps: tuple[Step, ...]
    workloads: tuple[FloorStatus, ...]
    """Those with a floor."""
    groups: tuple[SpreadGroup, ...]
    held: str | None
    """Why no pod is moved now, in words; None where moves are free."""
    problems: tuple[str, ...]
    """What owners wrote that makes no sense, and what keeps floors from standing, in words."""
    reserve: tuple[Loss, ...]
    """What on-demand nodes have free against the largest loss of each kind."""
    homeless: tuple[Pod, ...] = ()
    """Pods that would return to spot, and that the scheduler leads to no spot node that there is."""
    events: tuple[ClusterEvent, ...] = ()
    """The problems, as they are told on the objects."""


def plan_placement(  # noqa: PLR0913 - the whole world of the decision, each part named
    seen: Observation,
    now: datetime,
    *,
    namespaces: Mapping[str, str] | None = None,
    injection: Injection = NO_INJECTION,
    spot_return: SpotReturn = NO_RETURN,
    chosen: ChosenLayouts = NOTHING_CHOSEN,
) -> PlacementPlan:
    """Decide which labels and deletion costs are to change. Steady state asks for no change.

    Args:
        seen: one observation of the cluster, with its policy.
        now: the time of the observation.
        namespaces: namespace -> what its annotation asks for.
        injection: what the admission policy is told.
        spot_return: which workloads without a floor return to spot, and the pools that they may return to.
        chosen: the layouts of the workloads of which something is promised.
    """
    floors: list[tuple[Workload, OnDemandFloor]] = []
    acting: list[tuple[Workload, OnDemandFloor]] = []
    events = [*chosen.problems]
    unread: set[Ref] = set()
    there, on_both = constrained(seen), volumes_on_both(seen)
    windows = StartWindows(seen=seen, now=now)
    spread_now = {workload.ref for workloads in there.values() for workload in workloads}
    for workload in seen.workloads:
        layout = chosen.layouts.get(workload.ref)
        try:
            floor = floor_of(
                workload,
                namespaces=namespaces,
                default=seen.policy.min_on_demand,
                # The number that is left to Plimsoll is that of a layout chosen for a promise.
                late=windows.late if layout is None else _nothing_known,
                volumes_on_both=on_both,
            )
        except BadInput as error:
            events.append(about_workload(workload, "FloorNotUnderstood", str(error)))
            unread.add(workload.ref)
            continue
        if layout is not None:
            floor = with_layout(floor, layout)
        floor = as_policy_knows(injection, workload, floor)
        if floor.way is not FloorConstraint.FREE or workload.ref in spread_now:
            floors.append((workload, floor))
            if not seen.policy.observes(workload.ref.namespace):
                acting.append((workload, floor))
    events += problems_of(seen.nodes, floors)
    asked = {workload.ref: inf if floor.auto else floor.keep for workload, floor in floors}
    below = (
        about_workload(seen.workload[one.workload], "FloorBelowPool", f"{one.says}: {one.cure}")
        for one in slow_starts(windows)
        if one.workload in seen.workload
        and one.workload not in chosen.layouts
        and asked.get(one.workload, 0) < one.lost
    )
    events += islice(below, MOST_NAMED)
    spread = _spread(there, acting)
    groups = spread_groups(seen, spread, now)
    reserved = any(
        g.layout == SINGLE_REPLICA and g.opened and not on_demand_group(g.name) for g in groups
    )
    steps = _label_steps(seen, groups, capacity=bool(floors))
    needs = {workload.ref: lacks(workload, floor) for workload, floor in floors}
    lacking = [(workload, floor) for workload, floor in acting if needs[workload.ref] is not None]
    events += not_injected(injection, lacking)
    gives = injection.gives
    steps += [
        Step(action=told, nodes=frozenset())
        for told in injections(seen, gives, lacking, unread=unread, labelled=not steps)
    ]
    steps += [
        Step(action=SetDeletionCost(pod=pod, cost=cost, reason=reason), nodes=frozenset())
        for _, floor in acting
        for pod, cost, reason in deletion_costs(seen, floor)
    ]
    moves = Moves()
    held = why_not_now(seen, now) or ("labels change first" if steps else None)
    if held is None:
        by_policy = [(w, floor) for w, floor in acting if is_injected(gives, floor)]
        pinned = [w for w, floor in by_policy if floor.way is FloorConstraint.AFFINITY]
        led = {workload.ref for workload, _ in floors} | spread_now | unread
        returning = spot_return.moves(windows, led, now)
        back = uneven(seen, _next_pods(acting, by_policy), groups, now, pinned)
        moves = plan_moves(seen, chain(back, returning), now)
        steps += _steps_of(moves)
    pending = Counter(seen.workload_of(pod) for pod in seen.pending if not pod.released)
    return PlacementPlan(
        steps=tuple(sorted(steps, key=attrgetter("action.wave"))),
        workloads=tuple(
            status_of(
                seen,
                workload,
                floor,
                pending=pending[workload.ref],
                reserved=reserved,
                lacks=None if is_injected(gives, floor) else needs[workload.ref],
            )
            for workload, floor in floors
            if floor.way is not FloorConstraint.FREE
        ),
        groups=tuple(groups),
        held=held,
        problems=tuple(event.message for event in events),
        reserve=tuple(losses(seen)) if floors else (),
        homeless=moves.homeless,
        events=tuple(
            event
            for event in (*events, *chosen.events)
            if not event.about.namespace or not seen.policy.observes(event.about.namespace)
        ),
    )


def between_runs(
    seen: Observation, now: datetime, *, idle: bool, refused: Collection[str]
) -> Sequence[Step]:
    """Return what of placement cannot wait for the scheduled run, which is minutes away.

    A spread group that lost its nodes closes at once: until then every pod that moves would count it.
    Where a pod waited for long, all labels follow the nodes: a fresh node is of use to it only with its
    label. In a cluster that has nothing else to do the way back to spot goes on, move after move; of
    workloads that the admission policy constrains only the scheduled run knows how new pods are spread.

    Args:
        seen: one observation of the cluster.
        now: the time of the observation.
        idle: no interruption asks for anything now.
        refused: what the API server refused in this reconcile: workloads and nodes, in words.
    """
    spread = constrained(seen)
    if not spread:
        return ()
    groups = spread_groups(seen, spread, now)
    led = {workload.ref for workloads in spread.values() for workload in workloads}
    fresh = idle or any(waited(pod, now) and seen.workload_of(pod) in led for pod in seen.pending)
    labels = _label_steps(seen, [group for group in groups if fresh or not group.opened])
    if labels or not idle or why_not_now(seen, now) is not None:
        return [step for step in labels if step.action.target not in refused]
    templates = {
        layout: [
            w
            for w in workloads
            if layout in spread_keys(w.scheduling)
            and str(w.ref) not in refused
            and not seen.policy.observes(w.ref.namespace)
        ]
        for layout, workloads in spread.items()
    }
    return _steps_of(plan_moves(seen, uneven(seen, templates, groups, now), now))


def _nothing_known(_: Ref) -> None:
    return None


def _label_steps(
    seen: Observation, groups: Sequence[SpreadGroup], *, capacity: bool = False
) -> list[Step]:
    return [
        Step(
            action=LabelNode(
                node=node,
                labels=change,
                wave=Wave.CAPACITY if _opens_spot(change) else Wave.CORDON,
                reason=reason,
            ),
            nodes=frozenset({node.name}),
        )
        for node, change, reason in label_changes(seen.nodes, groups, capacity=capacity)
    ]


def _steps_of(moves: Moves) -> list[Step]:
    return [
        Step(action=release, nodes=frozenset({release.pod.node or ""}))
        for release in moves.releases
    ]


def _opens_spot(change: Mapping[str, str | None]) -> bool:
    return any(value is not None and not on_demand_group(value) for value in change.values())


def constrained(seen: Observation) -> Mapping[Layout, Sequence[Workload]]:
    """Return the workloads by the layouts whose labels their templates or pods name."""
    found: dict[Layout, list[Workload]] = defaultdict(list)
    for workload in seen.workloads:
        templates = (workload.scheduling, *seen.templates.get(workload.ref, ()))
        for layout in {key for scheduling in templates for key in spread_keys(scheduling)}:
            found[layout].append(workload)
    return found


def _spread(
    constrained: Mapping[Layout, Sequence[Workload]],
    floors: Sequence[tuple[Workload, OnDemandFloor]],
) -> Mapping[Layout, Sequence[Workload]]:
    """Add those that lack the constraint still, over layouts that nobody else is spread over.

    Nodes must have the label before they take it. Where others keep it there they do not count:
    `between_runs` does not know them, and the two would judge the groups differently, in turns.
    """
    found = defaultdict(list, {layout: [*there] for layout, there in constrained.items()})
    for workload, floor in floors:
        lacks = floor.way is FloorConstraint.SPREAD and not spread_keys(workload.scheduling)
        if lacks and floor.layout not in constrained:
            found[floor.layout].append(workload)
    return found


def _next_pods(
    floors: Sequence[tuple[Workload, OnDemandFloor]],
    by_policy: Sequence[tuple[Workload, OnDemandFloor]],
) -> Mapping[Layout, Sequence[Workload]]:
    """Return the workloads by the layouts that their next pods are spread over."""
    found: dict[Layout, list[Workload]] = defaultdict(list)
    for workload, _ in floors:
        for layout in spread_keys(workload.scheduling):
            found[layout].append(workload)
    for workload, floor in by_policy:
        if floor.way is FloorConstraint.SPREAD and not spread_keys(workload.scheduling):
            found[floor.layout].append(workload)
    return found
