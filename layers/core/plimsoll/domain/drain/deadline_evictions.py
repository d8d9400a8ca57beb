"""Second phase of a plan: which pods are evicted before anything serves in their place, and when.

That is a pod's eviction deadline, the last moment that leaves it the time it needs to stop. In a large interruption
thousands of pods reach theirs in the same second, and an API server takes only so many evictions a second. Such a plan
is therefore carried out beyond the usual time of a reconcile, and one that others overtake is made anew.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from plimsoll.domain.actions import Evict, Wave
from plimsoll.domain.disruptions import (
    Allowance,
    BudgetRule,
    EvictablePod,
    WorkloadDisruption,
    guards_of,
)
from plimsoll.domain.drain.plan_builder import PlanBuilder, clamped_grace
from plimsoll.domain.drain.strategies import replaced
from plimsoll.domain.interruptions import is_near
from plimsoll.domain.kubernetes import is_recreated
from plimsoll.domain.scheduling import Headroom

MOST_EVICTIONS: Final = 1_000
"""How many pods one plan evicts at their eviction deadline. Fewer, and a busy API server waits for plans; more, and
it still evicts pods by a plan that is half a minute old, while replacements of others are Ready."""
AT_ONCE: Final = 100
"""How many pods an API server evicts within the margin before an instance goes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DeadlineEvictions:
    """The pods that are evicted now, ready replacement or not, and when others are."""

    pods: Sequence[EvictablePod]
    """In the order in which they are evicted; one plan evicts `MOST_EVICTIONS` of them."""
    next_eviction: datetime | None
    """When the next pod has to be evicted, at the latest."""
    expires: datetime | None
    """When more pods reach their deadline than an API server evicts within a moment. None where they have it now."""
    hurried: bool
    """Whether another reconcile, which first lists the cluster, would come too late."""


def plan_deadline_evictions(
    draft: PlanBuilder,
    disruptions: Sequence[WorkloadDisruption],
    headroom: Headroom,
    allowance: Allowance,
    last: datetime,
) -> tuple[DeadlineEvictions, Headroom]:
    """Choose the pods that are evicted now, and claim places for their replacements.

    Args:
        draft: the plan so far.
        disruptions: all that is interrupted.
        headroom: after the capacity phase.
        allowance: what budgets let go in this plan.
        last: when the next plan will come.

    Returns:
        the pods and times, and the headroom that is left.
    """
    pods = _evicted(disruptions, last, draft.interrupted.turn)
    for one in pods:
        # The eviction API subtracts only pods that are Ready from what a budget allows.
        # https://kubernetes.io/docs/concepts/scheduling-eviction/api-eviction/#how-api-initiated-eviction-works
        blocked = (allowance.take if one.pod.ready else allowance.why_not)(one.pod)
        if is_recreated(one.pod) and (blocked is None or one.overrules_at(last)):
            headroom.move(one.pod)
            headroom.contention.promise(one.pod)
    evictable = [one for disruption in disruptions for one in disruption.evictable]
    # By time: the first is the next eviction, and the one with which more than `AT_ONCE` are due ends this plan.
    later = sorted(
        o.eviction_deadline for o in evictable if o.eviction_deadline and not o.late(last)
    )
    near = sum(is_near(one.deadline, draft.now) for one in evictable)
    many = len(pods) > AT_ONCE
    found = DeadlineEvictions(
        pods=pods,
        next_eviction=last if len(pods) >= MOST_EVICTIONS else next(iter(later), None),
        expires=None if many else next(iter(later[AT_ONCE - len(pods) :]), None),
        hurried=many or near > MOST_EVICTIONS,
    )
    return found, headroom


def _evicted(
    disruptions: Sequence[WorkloadDisruption], last: datetime, turn: Mapping[str, int]
) -> list[EvictablePod]:
    """Return the pods whose eviction deadline has come, in the order in which they are evicted.

    First those that others have replaced, and then node by node, where the fewest pods are left before others.
    """
    evictable = [one for disruption in disruptions for one in disruption.evictable]
    late = [one for one in evictable if one.late(last)]
    not_missed = {pod.uid for disruption in disruptions for pod in replaced(disruption)}
    left = Counter(one.pod.node or "" for one in evictable)

    # Where one plan does not evict all, or the API server is slow, some nodes are empty in place of none.
    def order(one: EvictablePod) -> tuple[bool, int, int]:
        node = one.pod.node or ""
        return one.pod.uid not in not_missed, left[node], turn[node]

    return sorted(late, key=order)


def add_evictions(
    draft: PlanBuilder,
    disruptions: Sequence[WorkloadDisruption],
    pods: Sequence[EvictablePod],
    last: datetime,
) -> None:
    """Add the evictions of pods whose eviction deadline has come, as many as one plan evicts.

    Args:
        draft: the plan so far.
        disruptions: all that is interrupted.
        pods: those that `plan_deadline_evictions` has chosen, in their order.
        last: when the next plan will come.
    """
    owner = {one.pod.uid: each for each in disruptions for one in each.evictable}
    for one in pods[:MOST_EVICTIONS]:
        eviction = Evict(
            pod=one.pod,
            overrule=one.overrules_at(last),
            guarded=bool(guards_of(draft.seen, one.pod)),
            reason=_why(one, draft.now, owner[one.pod.uid]),
            wave=Wave.DEADLINE,
        )
        draft.add(eviction, {one.pod.node or ""})


def _why(one: EvictablePod, now: datetime, disruption: WorkloadDisruption) -> str:
    come = "has come" if one.late(now) else "comes before the next plan would"
    reason = f"its eviction deadline {come}: its time to stop is {one.stop}"
    if one.pod.hook_seconds and not one.stop.known:
        reason += f", of which its preStop hook takes {one.pod.hook_seconds} s"
    if one.budget is BudgetRule.KEPT_BY_OWNER:
        reason += "; its owner lets nobody overrule its budget: if that refuses, it ends with its instance"
    if (grace := clamped_grace(one, now)) is not None:
        reason += f"; {grace} s are left"
    if disruption.workload is not None:
        reason += f"; {disruption.staying_ready} of {disruption.replicas} are Ready elsewhere"
    return reason
