"""Third phase of a plan: replacements that are under way go on, and others begin."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import replace
from datetime import datetime

from plimsoll.domain.disruptions import Allowance, EvictablePod, WorkloadDisruption
from plimsoll.domain.drain.do_not_disrupt import protections
from plimsoll.domain.drain.plan_builder import PlanBuilder
from plimsoll.domain.drain.strategies import strategy_of
from plimsoll.domain.interruptions import NEAR, NEVER
from plimsoll.domain.kubernetes import Pod, replacement_of
from plimsoll.domain.scheduling import Headroom


def plan_replacements(
    draft: PlanBuilder,
    disruptions: Sequence[WorkloadDisruption],
    headroom: Headroom,
    allowance: Allowance,
    evicted: Sequence[EvictablePod],
) -> Headroom:
    """Go on with the replacements of each workload, begin others, and return the headroom that is left.

    Args:
        draft: the plan so far.
        disruptions: all that is interrupted.
        headroom: after the evictions at deadlines.
        allowance: what they leave of budgets.
        evicted: the pods that are evicted in this plan: they serve no longer.
    """
    told = frozenset(one.pod.uid for one in evicted)
    # Two sorts, and both are stable: who would be at zero or below its floor comes first, and among these the
    # one that needs a place most.
    by_need = sorted(disruptions, key=_need)
    rest = {disruption.ref: _without(disruption, told) for disruption in by_need}
    ordered = [rest[disruption.ref] for disruption in sorted(by_need, key=_urgency)]
    first = {ref: pod for ref, one in rest.items() if (pod := _first(one)) is not None}
    # One place for each workload with nothing elsewhere, before any has its second. It is given back just before
    # its workload's own turn, which then claims as many as it can.
    homes = {pod.uid: headroom.snapshot.where(pod) for pod in first.values()}
    for pod in first.values():
        headroom.move(pod)
    # A copy, since nothing leaves here yet: each workload spends the allowance when its turn comes.
    left = allowance.copy()
    for disruption in ordered:  # before any place is sure: theirs may be asked for first
        strategy, _ = strategy_of(disruption)
        for pod in strategy.leaving_anyway(disruption, left):
            headroom.contention.join(replacement_of(pod))
    for disruption in ordered:
        if (pod := first.get(disruption.ref)) is not None:
            headroom.stay(pod, homes[pod.uid])
        _continue(disruption, draft, headroom, allowance)
    return headroom


def _without(disruption: WorkloadDisruption, evicted: Collection[str]) -> WorkloadDisruption:
    """Return what is left of a disruption once these pods are asked to stop: they serve no longer.

    Args:
        disruption: the disruption.
        evicted: uids of pods, those of other workloads too.
    """
    return replace(
        disruption,
        evictable=tuple(d for d in disruption.evictable if d.pod.uid not in evicted),
        pods=tuple(
            replace(p, deleting=disruption.now) if p.uid in evicted else p for p in disruption.pods
        ),
    )


def _waits_for_deadline(one: EvictablePod) -> bool:
    """Whether a pod leaves at its eviction deadline and never before.

    It may end or write a checkpoint by then, or nobody knows where it fits, or it would only come again.
    """
    return one.returned or not one.pod.restarts or one.pod.unread is not None


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
) -> None:
    """Go on with the pods that still have time. What is left of a disruption may be nothing."""
    patient = tuple(one for one in disruption.evictable if not _waits_for_deadline(one))
    if len(patient) < len(disruption.evictable):
        disruption = replace(disruption, evictable=patient)
    if not (disruption.evictable or disruption.released):
        return
    nodes = _nodes_of(disruption, draft.interrupted.names)
    # Asked of what is left: pods that wait for their deadlines do not decide how the others are replaced.
    strategy, why = strategy_of(disruption)
    steps = strategy.steps(disruption, headroom, allowance)
    # After the steps: only pods that this plan leaves where they are have to be kept from Karpenter.
    for mark in protections(disruption, steps.actions):
        draft.add(mark, nodes)
    for action in steps.actions:
        draft.add(action, nodes)
    if steps.waiting is not None:
        draft.wait(f"{steps.waiting} ({strategy.name}, because {why})", nodes, disruption.ref)


def _nodes_of(disruption: WorkloadDisruption, interrupted: frozenset[str]) -> frozenset[str]:
    """Return the interrupted nodes on which a disruption still has pods; all where none is left."""
    here = frozenset(p.node for p in disruption.pods if p.node in interrupted)
    others = frozenset(one.pod.node for one in disruption.evictable if one.pod.node)
    return here or others or interrupted


def _need(disruption: WorkloadDisruption) -> tuple[bool, int, int, datetime, bool, str]:
    """Who has one of the last places first: by priority, then who lacks the fewest pods of its ready floor.

    One place makes a single replica whole, and leaves a workload of many below its floor. Whose pods may stay for
    long waits; of others whose last pod goes first, then who cannot run twice.
    """
    strategy, _ = strategy_of(disruption)
    end = max((one.deadline or NEVER for one in disruption.evictable), default=NEVER)
    priority = max((one.pod.priority for one in disruption.evictable), default=0)
    patient = end - disruption.now >= NEAR
    return patient, -priority, -_spare(disruption), end, strategy.surges, str(disruption.ref)


def _urgency(disruption: WorkloadDisruption) -> tuple[bool, bool, bool, int]:
    """Who would be at zero chooses first, then who would be below its floor, then who cannot run twice."""
    strategy, _ = strategy_of(disruption)
    spare, at_zero = _spare(disruption), disruption.staying_ready == 0
    return spare >= 0, not at_zero, strategy.surges, 0 if at_zero else spare


def _spare(disruption: WorkloadDisruption) -> int:
    """Return how many more pods stay Ready than must serve, or how many fewer, below zero."""
    return disruption.staying_ready - max(disruption.floor, min(1, disruption.replicas))
