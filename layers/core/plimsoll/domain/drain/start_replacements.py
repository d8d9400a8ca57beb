"""Third phase of a plan: replacements that are under way go on, and others begin in turn."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from plimsoll.domain.actions import begins
from plimsoll.domain.disruptions import Allowance, EvictablePod, WorkloadDisruption
from plimsoll.domain.drain.do_not_disrupt import protections
from plimsoll.domain.drain.plan_builder import PlanBuilder
from plimsoll.domain.drain.rounds import Beginning, in_rounds
from plimsoll.domain.drain.strategies import way_of
from plimsoll.domain.kubernetes import Pod, replacement_of
from plimsoll.domain.scheduling import Headroom


def plan_replacements(  # noqa: PLR0913 - what a plan knows by then, each part named
    draft: PlanBuilder,
    disruptions: Sequence[WorkloadDisruption],
    headroom: Headroom,
    allowance: Allowance,
    evicted: Sequence[EvictablePod],
    *,
    most: int,
) -> None:
    """Go on with the replacements of each workload, and begin as many others as may be under way.

    Args:
        draft: the plan so far.
        disruptions: all that is interrupted.
        headroom: after the evictions at deadlines.
        allowance: what they leave of budgets.
        evicted: the pods that are evicted in this plan: they serve no longer.
        most: how many replacements may begin.
    """
    told = frozenset(one.pod.uid for one in evicted)
    ordered = [disruption.without(told) for disruption in sorted(disruptions, key=_urgency)]
    first = {one.ref: pod for one in ordered if (pod := _first(one)) is not None}
    homes = {pod.uid: headroom.snapshot.where(pod) for pod in first.values()}
    for pod in first.values():
        headroom.move(pod)
    left = allowance.copy()
    for disruption in ordered:  # before any place is sure: theirs may be asked for first
        way, _ = way_of(disruption)
        for pod in way.leaving_anyway(disruption, left):
            headroom.contention.join(replacement_of(pod))
    begun: list[Beginning] = []
    for disruption in ordered:
        if (pod := first.get(disruption.ref)) is not None:
            headroom.stay(pod, homes[pod.uid])
        begun += _continue(disruption, draft, headroom, allowance)
    _begin(in_rounds(begun, draft.interrupted.turn), draft, most=most)


def _first(disruption: WorkloadDisruption) -> Pod | None:
    """Return a pod of a workload of which nothing stands elsewhere.

    A place is kept for it: where capacity is short, no workload gets a second place while another has none.
    """
    if disruption.staying:
        return None
    moving = (one.pod for one in disruption.evictable)
    return next((pod for pod in moving if pod.restarts and not pod.bare), None)


def _continue(
    disruption: WorkloadDisruption, draft: PlanBuilder, headroom: Headroom, allowance: Allowance
) -> Iterator[Beginning]:
    """Go on with pods that still have time, and yield what would begin another replacement.

    What is left of a disruption may be nothing.
    """
    patient = tuple(o for o in disruption.evictable if o.pod.restarts and o.pod.unread is None)
    if len(patient) < len(disruption.evictable):  # it may finish or checkpoint until its deadline
        disruption = replace(disruption, evictable=patient)
    if not (disruption.evictable or disruption.released):
        return
    nodes = _nodes_of(disruption, draft.interrupted.names)
    way, why = way_of(disruption)
    steps = way.steps(disruption, headroom, allowance)
    for mark in protections(disruption, steps.actions):
        draft.add(mark, nodes)
    for action in steps.actions:
        if begins(action):
            yield Beginning(disruption=disruption, action=action, nodes=nodes)
        else:
            draft.add(action, nodes)
    if steps.waiting is not None:
        draft.wait(f"{disruption.ref} ({way.name}, because {why}): {steps.waiting}", nodes)


def _begin(begun: Sequence[Beginning], draft: PlanBuilder, *, most: int) -> None:
    """Begin as many replacements as may be under way, and say on which nodes others wait for their turn."""
    for one in begun[:most]:
        draft.add(one.action, one.nodes)
    draft.wait(
        "replacements are begun in turn, as many at once as controllers keep up with",
        sorted({one.pod.node for one in begun[most:] if one.pod.node}),
    )


def _nodes_of(disruption: WorkloadDisruption, interrupted: frozenset[str]) -> frozenset[str]:
    """Return the interrupted nodes on which a disruption still has pods; all where none is left."""
    here = frozenset(p.node for p in disruption.pods if p.node in interrupted)
    others = frozenset(one.pod.node for one in disruption.evictable if one.pod.node)
    return here or others or interrupted


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
