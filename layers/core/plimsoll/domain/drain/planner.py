"""The plan of a cluster: all its interruptions as one, in four phases.

1. Capacity: nodes are requested for the replacements.
2. Deadline evictions: pods that cannot wait for a replacement any longer are evicted.
3. Replacements: those under way go on, and others begin.
4. Finalization: marks, cordons whose turn it is, and the end of interruptions.

`plan_drain` is pure: what was seen and the time go in, actions with reasons come out. It is level
triggered. It knows nothing of earlier plans, so it may be asked twice, late, or by two at once.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import replace
from datetime import datetime, timedelta

from plimsoll.domain.actions import Cordon, Due, Evict, Release, Step, Wave
from plimsoll.domain.disruptions import (
    ASSUMED_SECONDS,
    PATIENCE,
    Allowance,
    EvictablePod,
    WorkloadDisruption,
    by_node,
    disruptions_of,
    least_seconds,
    left_on,
    left_to_pod_gc,
    misread_opt_outs,
    of_present_launches,
    tolerant_workloads,
)
from plimsoll.domain.drain.capacity import plan_capacity
from plimsoll.domain.drain.cluster_plan import ClusterPlan
from plimsoll.domain.drain.cordon_rate_limit import GATHERING, turns
from plimsoll.domain.drain.deadline_evictions import add_evictions, plan_deadline_evictions
from plimsoll.domain.drain.finalization import plan_finalization, plan_guards, report_of
from plimsoll.domain.drain.gang_deadlines import gang_deadlines
from plimsoll.domain.drain.plan_builder import PlanBuilder
from plimsoll.domain.drain.replacements import plan_replacements
from plimsoll.domain.interruptions import NEAR
from plimsoll.domain.kubernetes import STOP_SECONDS, Ref
from plimsoll.domain.node_groups import Refusal
from plimsoll.domain.observation import InterruptedNodes, Observation, is_gone
from plimsoll.domain.placement import between_runs
from plimsoll.domain.scheduling import headroom_for


def plan_drain(
    seen: Observation,
    now: datetime,
    *,
    refusals: Mapping[str, Sequence[Refusal]] | None = None,
    refused: Mapping[str, str] | None = None,
    ahead: timedelta = timedelta(),
) -> ClusterPlan:
    """Decide what to do now about every interrupted node of a cluster.

    Args:
        seen: one observation of the cluster and its node groups.
        now: the time of the observation.
        refusals: key of a node group -> what our own requests for nodes were refused with.
        refused: what the API server refused, and why, in words: a workload whose pods it let nobody
            release, a pod that it did not let go, or a node that it did not let us label.
        ahead: how much later than after the usual pause the next plan will come, since reading and
            planning take long. Pods whose eviction deadline comes before it are evicted now.
    """
    last = now + ahead
    # Before anything reads a record: one of a former launch would interrupt a node that runs again.
    seen = of_present_launches(seen)
    interrupted = InterruptedNodes.of(seen)
    disruptions = disruptions_of(seen, interrupted, now, refused)
    draft = PlanBuilder.of(seen, interrupted, disruptions, refused or {}, now)
    _note_assumptions(disruptions, draft)
    _note_tolerant(draft)
    _note_misread(draft)
    # Nodes that this plan cordons are closed before anything asks for a place: a replacement that was
    # placed on one would have to move again.
    turn_of = list(turns(seen, now))
    closing = {node.name for node, turn in turn_of if isinstance(turn, Cordon)}
    headroom = headroom_for(_without(seen, closing), interrupted)
    # One allowance for all workloads: several may share a budget, and the first phase that asks has it.
    allowance = Allowance.of(seen)

    # The order of the phases is the order in which places and budgets are spent: each takes the headroom that the one
    # before it leaves. Capacity first, because it says which pods no node can take. Deadline evictions next: these pods
    # leave in any case, and what they take of places and budgets nobody else may count on.
    capacity, headroom = plan_capacity(draft, disruptions, headroom, refusals or {})
    evictions, headroom = plan_deadline_evictions(draft, disruptions, headroom, allowance, last)
    headroom = plan_replacements(
        draft,
        # A node that is opened again holds places that this headroom does not know.
        () if capacity.uncordons else disruptions,
        headroom,
        allowance,
        evictions.pods,
    )
    for group, pods in headroom.snapshot.made_way_together.items():
        words = f"kube-scheduler preempts all of its {pods} pods together for pods without another place"
        draft.note(words, interrupted.names, group)
    # For whoever else drains: what this plan evicts is decided by the budgets that stand.
    plan_guards(draft, disruptions)
    # Chosen before the replacements and added after them: a report names first which pods others have replaced.
    add_evictions(draft, disruptions, evictions.pods, last)
    # After the replacements, since a dead pod is freed only where its successor takes nobody's place.
    plan_finalization(draft, turn_of, headroom)
    # After finalization, whose steps say which nodes are opened again: no deadline comes there.
    for told in gang_deadlines(seen, interrupted.names, disruptions, draft.steps, now):
        draft.add(told, {told.pod.node or ""})

    here = by_node(disruptions)
    # Asked before placement adds its steps: it moves pods only where the drain has nothing left to do.
    busy = (
        bool(draft.steps)
        or any(turn == GATHERING for _, turn in turn_of)
        or _under_way(seen, disruptions, interrupted, now)
    )
    draft.steps += between_runs(seen, now, idle=not busy, refused=draft.refused)
    steps = _in_order(draft.steps)
    reasons = draft.told()
    return ClusterPlan(
        at=now,
        seen=seen,
        disruptions=tuple(disruptions),
        steps=tuple(steps),
        waiting=draft.waiting(),
        notes=draft.notes(),
        reports=tuple(
            report_of(
                seen,
                node,
                here.get(node.name, ()),
                reasons[node.name],
                asked=bool(capacity.scale_up.grows),
                refused=capacity.scale_up.refused,
                now=now,
            )
            for node in interrupted.nodes
        ),
        busy=busy or bool(steps),
        hurried=evictions.hurried,
        due=tuple(_due(disruptions, draft)),
        next_eviction=evictions.next_eviction,
        expires=evictions.expires,
    )


def _in_order(steps: Iterable[Step]) -> list[Step]:
    """Sort steps by wave, and let the n-th pod of each workload leave before the next of any.

    A run that dies half-way has then begun with each workload, and the next run goes on with those that are left.
    """
    begun: Counter[Ref | None] = Counter()
    keyed: list[tuple[int, int, Step]] = []
    for step in steps:
        turn = 0
        if isinstance(step.action, Release | Evict) and step.action.wave is Wave.REPLACE:
            turn = begun[step.action.pod.owner]
            begun[step.action.pod.owner] += 1
        keyed.append((step.action.wave, turn, step))
    # A stable sort: within a turn, steps keep the order in which the phases added them.
    return [step for *_, step in sorted(keyed, key=lambda one: one[:2])]


def _under_way(
    seen: Observation,
    disruptions: Iterable[WorkloadDisruption],
    interrupted: InterruptedNodes,
    now: datetime,
) -> bool:
    """Whether a deadline presses, or pods stop or start whose state the next step waits for."""
    gone = (node for node in interrupted.nodes if is_gone(seen, node))
    if any(
        n.ready or not (pod.held_by_finalizers or left_to_pod_gc(n, pod, now))
        for n in gone
        for pod in left_on(seen, n)
    ):
        return True
    if any(
        i.deadline and abs(i.deadline - now) < NEAR and i.phase == "open"
        for i in interrupted.interruption.values()
    ):
        return True
    return any(_in_motion(disruption, now) for disruption in disruptions)


def _in_motion(disruption: WorkloadDisruption, now: datetime) -> bool:
    """Whether pods of a workload stop, start or are about to be made; what takes long is left out."""
    return (
        any(now - PATIENCE < p.deleting for p in disruption.leaving if p.deleting)
        or any(
            p.uid not in disruption.steady and now - p.created < PATIENCE
            for p in disruption.staying
        )
        or bool(disruption.released and disruption.missing)
        or disruption.uncounted
    )


def _note_assumptions(disruptions: Iterable[WorkloadDisruption], draft: PlanBuilder) -> None:
    """Name the workloads whose pods have a long grace period of which nobody says how much they need."""
    for disruption in disruptions:
        unstated = [one for one in disruption.evictable if one.deadline and _is_unstated(one)]
        if unstated:
            longest = max(unstated, key=lambda one: one.pod.grace_seconds).pod
            of_it = "nothing says how much of it its pods need to stop"
            if longest.hook_seconds:
                of_it = (
                    f"its preStop hook sleeps for {longest.hook_seconds} s of it: its pods are evicted "
                    f"{least_seconds(longest)} s before the deadline, whether others serve in their place or not"
                )
            text = (
                f"its grace period is {longest.grace_seconds} s, and {of_it}; state what they need in the "
                f"annotation {STOP_SECONDS}"
            )
            nodes = {one.pod.node for one in unstated if one.pod.node}
            draft.note(text, nodes, disruption.ref)


def _is_unstated(one: EvictablePod) -> bool:
    """Whether nothing says how much of a long grace period a pod needs."""
    return not one.stop.known and one.pod.grace_seconds > ASSUMED_SECONDS


def _due(disruptions: Iterable[WorkloadDisruption], draft: PlanBuilder) -> Iterator[Due]:
    """Yield by deadline and workload the pods that this plan does not evict yet."""
    evicted = {step.action.pod.uid for step in draft.steps if isinstance(step.action, Evict)}
    found: dict[tuple[datetime, str], list[str]] = defaultdict(list)
    for disruption in disruptions:
        for one in disruption.evictable:
            if one.eviction_deadline is not None and one.pod.uid not in evicted:
                found[one.eviction_deadline, str(disruption.ref)].append(str(one.pod))
    for (at, workload), pods in sorted(found.items()):
        yield Due(at=at, workload=workload, pods=tuple(pods))


def _note_tolerant(draft: PlanBuilder) -> None:
    """Name the workloads whose pods may return to the node that they leave."""
    for node in draft.interrupted.names:
        for found in tolerant_workloads(draft.seen, {node}):
            draft.note(f"{found.says}; {found.cure}", {node}, found.workload)


def _note_misread(draft: PlanBuilder) -> None:
    """Name the workloads whose owners may have meant to opt out, and did not."""
    for node in draft.interrupted.names:
        for found in misread_opt_outs(draft.seen, {node}):
            draft.note(f"{found.says}; {found.cure}", {node}, found.workload)


def _without(seen: Observation, closing: AbstractSet[str]) -> Observation:
    """Return what is seen once this plan has cordoned these nodes: no replacement goes there."""
    if not closing:
        return seen
    nodes = [replace(n, unschedulable=True) if n.name in closing else n for n in seen.nodes]
    return replace(seen, nodes=nodes)
