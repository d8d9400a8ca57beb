"""The plan of a cluster: all its interruptions as one.

`plan_drain` is pure: what was seen and the time go in, actions with reasons come out. It is level
triggered. It knows nothing of earlier plans, so it may be asked twice, late, or by two at once.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import replace
from datetime import datetime, timedelta

from plimsoll.domain.actions import (
    SURE,
    Cordon,
    Evict,
    Exclude,
    ForceDelete,
    Pace,
    Plan,
    TaintNode,
    Uncordon,
    Unguard,
)
from plimsoll.domain.capacity import plan_scale_up
from plimsoll.domain.disruptions import (
    WorkloadDisruption,
    by_node,
    disruptions_of,
    held_on,
    of_present_launches,
    opted_out_on,
)
from plimsoll.domain.drain.added_nodes import may_be_added, scale_down_steps
from plimsoll.domain.drain.cordon_rate_limit import GATHERING, given_back, turns
from plimsoll.domain.drain.dead_pods import kept
from plimsoll.domain.drain.deadline_evictions import deadline_evictions, evict_now
from plimsoll.domain.drain.evict_first import EvictFirst
from plimsoll.domain.drain.finalize import finalize_steps, report_of
from plimsoll.domain.drain.load_balancers import exclusions
from plimsoll.domain.drain.plan_builder import PlanBuilder, named
from plimsoll.domain.drain.queued_replacements import queued
from plimsoll.domain.drain.requeue import eviction_deadlines, under_way, with_near_deadline
from plimsoll.domain.drain.rounds import Beginning, in_rounds, too_late
from plimsoll.domain.drain.start_replacements import plan_begun, plan_moves, without_told
from plimsoll.domain.drain.strategies import returning, way_of
from plimsoll.domain.drain.throughput import AT_ONCE, MOST_EVICTIONS, Throughput
from plimsoll.domain.kubernetes import STOP_SECONDS
from plimsoll.domain.node_groups import Refusal
from plimsoll.domain.observation import InterruptedNodes, Observation
from plimsoll.domain.placement import between_runs
from plimsoll.domain.scheduling import Headroom, headroom_for
from plimsoll.domain.zones import shift_taints


def plan_drain(  # noqa: PLR0913 - what was learned from earlier plans, each part named
    seen: Observation,
    now: datetime,
    *,
    refusals: Mapping[str, Sequence[Refusal]] | None = None,
    refused: Mapping[str, str] | None = None,
    ahead: timedelta = timedelta(),
    pace: Pace | None = None,
    throughput: Throughput | None = None,
) -> Plan:
    """Decide what to do now about every interrupted node of a cluster.

    Args:
        seen: one observation of the cluster and its node groups.
        now: the time of the observation.
        refusals: key of a node group -> what our own requests for nodes were refused with.
        refused: what the API server refused, and why, in words: a workload whose pods it let nobody
            release, a pod that it did not let go, or a node that it did not let us label.
        ahead: how much later than usual the next plan will come, since the API server is slow. Pods
            whose latest safe start comes before it are told now.
        pace: how many replacements may be under way, as the plan before left it; None after none.
        throughput: how many pods the API server lets go in a second; None where nobody knows yet.
    """
    last = now + ahead
    seen = of_present_launches(seen)
    interrupted = InterruptedNodes.of(seen)
    disruptions = disruptions_of(seen, interrupted, now, refused)
    draft = PlanBuilder(
        seen=seen,
        interrupted=interrupted,
        refused=refused or {},
        grace={
            one.pod.uid: left
            for disruption in disruptions
            for one in disruption.evictable
            if (left := one.clamped_grace(now)) is not None
        },
    )
    _note_assumptions(disruptions, draft)
    turn_of = list(turns(seen, now))
    closing = {node.name for node, turn in turn_of if isinstance(turn, Cordon)}
    headroom = headroom_for(_without(seen, closing), interrupted)
    pace = (pace or Pace()).observed(queued(disruptions, headroom), now)
    scale_up = plan_scale_up(
        seen, interrupted, disruptions, headroom, refusals=refusals or {}, now=now
    )
    headroom.unplaceable = scale_up.unplaceable
    headroom.crowded_out = scale_up.crowded_out
    headroom.out_of_time = {
        one.pod.uid for d in disruptions for one in d.evictable if one.late(now + d.start)
    }
    for grow in scale_up.grows:
        draft.add(grow, interrupted.names)
    for words in (
        *scale_up.doubts,
        *scale_up.refused.values(),
        *named(scale_up.given_up, "pods have no headroom"),
    ):
        draft.wait(words, interrupted.names)
    back = _plan_given_back(draft, scale_up.unplaceable, headroom, now)
    owed = (pod for one in disruptions if not way_of(one)[0].surges for pod in one.owed)
    for pod in (*owed, *returning(seen)):
        headroom.reserve(pod)
    calls = deadline_evictions(disruptions, last, interrupted.turn, throughput or Throughput())
    for one in calls:
        headroom.move(one.pod)
        headroom.contention.promise(one.pod)
    told = {one.pod.uid for one in calls}
    begun: list[Beginning] = []
    for disruption in () if back else sorted(disruptions, key=_urgency):
        begun += plan_moves(without_told(told, disruption, now), draft, headroom)
    many_calls = len(calls) > AT_ONCE
    ordered = in_rounds(begun, interrupted.turn)
    late = too_late(ordered, pace, now)
    evict_first = EvictFirst(headroom) if len(late) > AT_ONCE and pace.keeps_up else None
    most = SURE if many_calls else pace.allowance
    plan_begun(ordered, draft, late, evict_first, most=most)
    _plan_unguarded(disruptions, draft)
    for one in calls[:MOST_EVICTIONS]:
        draft.add(evict_now(one, now, last), {one.pod.node or ""})
    marks: list[TaintNode | Exclude] = [*shift_taints(seen), *exclusions(seen, interrupted, now)]
    for mark in marks:
        draft.add(mark, {mark.node.name})
    for node, turn in turn_of:
        if isinstance(turn, str):
            draft.wait(turn, {node.name})
        else:
            draft.add(turn, {node.name})
    _plan_endings(draft, headroom, now)
    here = by_node(disruptions)
    to_come = sorted(end for end in eviction_deadlines(disruptions) if end > last)
    busy = (
        bool(draft.steps)
        or any(turn == GATHERING for _, turn in turn_of)
        or under_way(seen, disruptions, interrupted, now)
    )
    draft.steps += between_runs(seen, now, idle=not busy, refused=draft.refused)
    steps = sorted(draft.steps, key=lambda step: step.action.wave)
    return Plan(
        steps=tuple(steps),
        waiting={node: tuple(texts) for node, texts in sorted(draft.waiting.items())},
        notes={node: tuple(texts) for node, texts in sorted(draft.notes.items())},
        reports=tuple(
            report_of(
                seen,
                node,
                here.get(node.name, ()),
                draft.told(node.name),
                asked=bool(scale_up.grows),
                refused=scale_up.refused,
                now=now,
            )
            for node in interrupted.nodes
        ),
        busy=busy or bool(steps),
        pace=pace,
        hurried=many_calls or with_near_deadline(disruptions, now) > MOST_EVICTIONS,
        next_eviction=last if len(calls) >= MOST_EVICTIONS else next(iter(to_come), None),
        expires=None if many_calls else next(iter(to_come[AT_ONCE - len(calls) :]), None),
    )


def _urgency(disruption: WorkloadDisruption) -> tuple[bool, bool, bool, int, int, str]:
    """Who would be at zero chooses first, then who would be below its floor, then who cannot run twice."""
    way, _ = way_of(disruption)
    spare = disruption.staying_ready - max(disruption.floor, min(1, disruption.replicas))
    priority = max((d.pod.priority for d in disruption.evictable), default=0)
    return (
        spare >= 0,
        disruption.staying_ready > 0,
        way.surges,
        spare,
        -priority,
        str(disruption.ref),
    )


def _note_assumptions(disruptions: Iterable[WorkloadDisruption], draft: PlanBuilder) -> None:
    """Name the workloads whose pods have a long grace period of which nobody says how much they need."""
    for disruption in disruptions:
        unstated = [one for one in disruption.evictable if one.deadline and one.unstated]
        if unstated:
            longest = max(one.pod.grace_seconds for one in unstated)
            text = (
                f"{disruption.ref}: its grace period is {longest} s, and nothing says how much of it its pods need to "
                f"stop; state it in the annotation {STOP_SECONDS}"
            )
            draft.note(text, {one.pod.node for one in unstated if one.pod.node})


def _without(seen: Observation, closing: AbstractSet[str]) -> Observation:
    """Return what is seen once this plan has cordoned these nodes: no replacement goes there."""
    if not closing:
        return seen
    nodes = [replace(n, unschedulable=True) if n.name in closing else n for n in seen.nodes]
    return replace(seen, nodes=nodes)


def _plan_unguarded(disruptions: Iterable[WorkloadDisruption], draft: PlanBuilder) -> None:
    """Take budgets of ours away where an owner has made another meanwhile: two let no pod go."""
    for disruption in disruptions:
        if len(disruption.budgets) > 1:
            for budget in disruption.budgets:
                if budget.guards:
                    why = "the eviction API refuses pods that several budgets cover"
                    draft.add(Unguard(budget=budget, reason=why), draft.interrupted.names)


def _plan_given_back(
    draft: PlanBuilder, unplaceable: Collection[str], headroom: Headroom, now: datetime
) -> bool:
    """Uncordon a node for a pod with no other place; whether so: moves then wait for the next plan."""
    back = list(given_back(draft.seen, unplaceable, headroom.snapshot, now))
    for uncordon in back:
        draft.add(uncordon, {uncordon.node.name})
    return bool(back)


def _plan_endings(draft: PlanBuilder, headroom: Headroom, now: datetime) -> None:
    """Finish with nodes that are empty or gone, and say which pods keep others from being empty."""
    for node in draft.interrupted.nodes:
        if alone := opted_out_on(draft.seen, node):
            named = ", ".join(map(str, alone))
            draft.wait(f"is not empty before its opted-out pods end: {named}", {node.name})
        if held := held_on(draft.seen, node, now, draft.refused):
            named = ", ".join(map(str, held))
            found = draft.interrupted.interruption[node.name]
            words = f"{draft.seen.policy.response(found)} on {found.kind}"
            draft.wait(f"these stay until there is a deadline ({words}): {named}", {node.name})
    back = {
        name for step in draft.steps if isinstance(step.action, Uncordon) for name in step.nodes
    }
    endings = [
        (name, action)
        for name, action in finalize_steps(draft.seen, draft.interrupted, now)
        if name not in back
    ]
    dead = [action.pod for _, action in endings if isinstance(action, Evict | ForceDelete)]
    why_kept = kept(draft.seen, draft.interrupted, dead, headroom, now)
    for name, action in endings:
        match action:
            case Evict(pod=pod) | ForceDelete(pod=pod) if why := why_kept.get(pod.uid):
                draft.wait(f"{pod} died; {why}", {name})
            case _:
                draft.add(action, {name})
    for step in scale_down_steps(draft.seen, now):
        draft.add(step, {step.node.name})
    if not draft.seen.groups:
        draft.wait("its node group says whether it was added", may_be_added(draft.seen))
