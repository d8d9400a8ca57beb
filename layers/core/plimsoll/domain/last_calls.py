"""Which pods are told to stop before anything serves in their place, and when.

At the latest that is a pod's last call, the last moment that leaves it the time it needs to stop. In a large storm it
is earlier for some, since an API server takes only so many evictions in a second: see
`plimsoll.domain.replace.throughput`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from operator import itemgetter

from plimsoll.domain.actions import Evict
from plimsoll.domain.replace import EvictablePod, WorkloadDisruption, way_of
from plimsoll.domain.replace.throughput import LAST_CALLS, Throughput


def last_calls(
    disruptions: Sequence[WorkloadDisruption],
    last: datetime,
    turn: Mapping[str, int],
    throughput: Throughput,
) -> list[EvictablePod]:
    """Return the pods that are told to stop now, ready replacement or not.

    First those whose latest safe start has come, node by node. Then as many others as could not be told in
    time if all of them waited for theirs.
    """
    evictable = [one for disruption in disruptions for one in disruption.evictable]
    late = [one for one in evictable if one.late(last)]
    overdue = throughput.overdue((o.latest_start for o in evictable if o.latest_start), last)
    early = _early(disruptions, last, turn) if overdue > len(late) else []
    late.sort(key=lambda one: turn[one.pod.node or ""])
    return [*late, *early[: max(0, min(overdue, LAST_CALLS) - len(late))]]


def _early(
    disruptions: Iterable[WorkloadDisruption], last: datetime, turn: Mapping[str, int]
) -> list[EvictablePod]:
    """Return the pods that may be told before their last call, in the order in which they are.

    First those without which their workload keeps its ready floor, then those without which it still serves. Among
    them those of lower priority, and those on the nodes whose turn to be replaced comes last. Never the last
    that serves, nor what a budget keeps, nor what may end or checkpoint until its own last call.
    """
    found: list[tuple[bool, int, int, EvictablePod]] = []
    for disruption in disruptions:
        way, _ = way_of(disruption)
        if not way.surges:
            continue
        mine = [o for o in disruption.evictable if o.latest_start and not o.late(last)]
        mine = [o for o in mine if o.pod.restarts and o.pod.unread is None]
        mine.sort(key=lambda one: -turn[one.pod.node or ""])
        late = sum(disruption.serves(o.pod) and o.late(last) for o in disruption.evictable)
        serving = disruption.serving - late
        allowed = len(mine) if disruption.allowed is None else disruption.allowed - late
        for one in mine[: max(0, allowed)]:
            serving -= disruption.serves(one.pod)
            if serving < 1:
                break
            below = serving < disruption.floor
            found.append((below, one.pod.priority, -turn[one.pod.node or ""], one))
    return [one for *_, one in sorted(found, key=itemgetter(0, 1, 2))]


def evict_now(one: EvictablePod, now: datetime, last: datetime) -> Evict:
    """Return the eviction of a pod that is told. Only a last call overrules a budget.

    Args:
        one: the pod.
        now: the time.
        last: when the next plan will come.
    """
    if not one.late(last):
        reason = (
            f"its latest safe start comes at {one.latest_start:%H:%M:%S}, and the API server would "
            "not take the evictions of all pods that are to be told by then"
        )
        return Evict(pod=one.pod, overrule=False, reason=reason)
    grace = one.clamped_grace(now)
    come = "has come" if one.late(now) else "comes before the next plan would"
    reason = f"its latest safe start {come}: it may need {one.pod.stop_seconds} s to stop"
    if grace is not None:
        reason += f", of which {grace} s are left"
    return Evict(
        pod=one.pod,
        grace_seconds=grace,
        overrule=one.overrules,
        guarded=one.guarded,
        reason=reason,
    )
