"""Which pods are told to stop before anything serves in their place, and when.

At the latest that is a pod's eviction deadline, the last moment that leaves it the time it needs to stop. In a large storm it
is earlier for some, since an API server takes only so many evictions in a second: see
`plimsoll.domain.drain.throughput`.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from operator import itemgetter

from plimsoll.domain.actions import Evict
from plimsoll.domain.disruptions import EvictablePod, WorkloadDisruption
from plimsoll.domain.drain.strategies import way_of
from plimsoll.domain.drain.throughput import MOST_EVICTIONS, Throughput


def deadline_evictions(
    disruptions: Sequence[WorkloadDisruption],
    last: datetime,
    turn: Mapping[str, int],
    throughput: Throughput,
) -> list[EvictablePod]:
    """Return the pods that are told to stop now, ready replacement or not.

    First those whose latest safe start has come: those that others have replaced, and then node by node, where the fewest
    pods are left before others. Then as many others as could not be told in time if all of them waited
    for theirs, of those whose deadlines are no more than `ENDING` away.
    """
    evictable = [one for disruption in disruptions for one in disruption.evictable]
    late = [one for one in evictable if one.late(last)]
    overdue = throughput.overdue(
        (o.eviction_deadline for o in evictable if o.eviction_deadline and o.ending(last)), last
    )
    early = _early(disruptions, last, turn) if overdue > len(late) else []
    replaced = {p.uid for d in disruptions for p in d.leaving_order[: d.superfluous]}
    left = Counter(one.pod.node or "" for one in evictable)

    def order(one: EvictablePod) -> tuple[bool, int, int]:
        node = one.pod.node or ""
        return one.pod.uid not in replaced, left[node], turn[node]

    late.sort(key=order)
    return [*late, *early[: max(0, min(overdue, MOST_EVICTIONS) - len(late))]]


@dataclass(frozen=True, slots=True)
class _Early:
    """The pods of a workload that may be told before their eviction deadline."""

    pods: Sequence[EvictablePod]
    disruption: WorkloadDisruption
    serving: int
    """How many of its pods serve, without those whose eviction deadline has come."""
    allowed: int

    @property
    def spare(self) -> int:
        """How many that serve can be told, and the workload still keeps its ready floor."""
        return min(self.allowed, self.serving - max(1, self.disruption.floor))

    def in_order(self, order: Mapping[str, int]) -> Iterator[tuple[bool, EvictablePod]]:
        """Yield its pods by the order of their nodes, and whether it is below its floor without them."""
        serving = self.serving
        mine = sorted(self.pods, key=lambda one: order[one.pod.node or ""])
        for one in mine[: self.allowed]:
            serving -= self.disruption.serves(one.pod)
            if serving < 1:
                return
            yield serving < self.disruption.floor, one


def _early(
    disruptions: Iterable[WorkloadDisruption], last: datetime, turn: Mapping[str, int]
) -> list[EvictablePod]:
    """Return the pods that may be told before their eviction deadline, in the order in which they are.

    First those without which their workload keeps its ready floor, then those without which it still serves. Among
    them those of lower priority, and node by node. Never the last that serves, nor what a budget keeps, nor what may end or
    checkpoint until its own eviction deadline.
    """
    surging = [d for d in disruptions if way_of(d)[0].surges]
    workloads = [_of(disruption, last) for disruption in surging]
    waiting = Counter(
        o.pod.node or "" for d in disruptions for o in d.evictable if not o.late(last)
    )
    order = _emptied(workloads, waiting, turn)
    found = [
        (below, one.pod.priority, order[one.pod.node or ""], one)
        for workload in workloads
        for below, one in workload.in_order(order)
    ]
    return [one for *_, one in sorted(found, key=itemgetter(0, 1, 2))]


def _of(disruption: WorkloadDisruption, last: datetime) -> _Early:
    mine = [o for o in disruption.evictable if o.ending(last) and not o.late(last)]
    late = sum(disruption.serves(o.pod) and o.late(last) for o in disruption.evictable)
    allowed = len(mine) if disruption.allowed is None else disruption.allowed - late
    return _Early(
        pods=[o for o in mine if o.pod.restarts and o.pod.unread is None],
        disruption=disruption,
        serving=disruption.serving - late,
        allowed=max(0, allowed),
    )


def _emptied(
    workloads: Sequence[_Early], waiting: Mapping[str, int], turn: Mapping[str, int]
) -> Mapping[str, int]:
    """Return the order in which nodes are emptied: as many of them wholly as ready floors allow.

    If each workload chose among its own pods, pods would leave every node and no node would be empty. So first come
    nodes that can be emptied without any workload below its floor, those with the fewest pods before others, then
    those of which the fewest pods would have to stay. Among equals the nodes whose turn to be replaced comes last.

    Args:
        workloads: with the pods that may be told.
        waiting: node -> its pods that were not told yet, whether they may be told early or not.
        turn: node -> its turn to be replaced.
    """
    on: dict[str, list[int]] = defaultdict(list)
    serving: dict[str, Counter[int]] = defaultdict(Counter)
    for number, workload in enumerate(workloads):
        for one in workload.pods:
            node = one.pod.node or ""
            on[node].append(number)
            serving[node][number] += workload.disruption.serves(one.pod)
    spare = [workload.spare for workload in workloads]
    whole: list[str] = []
    for node in sorted(on, key=lambda node: (waiting[node], -turn[node])):
        if len(on[node]) == waiting[node] and all(spare[w] >= n for w, n in serving[node].items()):
            whole.append(node)
            for number, count in serving[node].items():
                spare[number] -= count

    def stay(node: str) -> int:
        excess = sum(max(0, n - max(0, spare[w])) for w, n in serving[node].items())
        return waiting[node] - len(on[node]) + excess

    parts = sorted(on.keys() - set(whole), key=lambda node: (stay(node), -turn[node]))
    return {node: number for number, node in enumerate([*whole, *parts])}


def evict_now(one: EvictablePod, now: datetime, last: datetime) -> Evict:
    """Return the eviction of a pod that is asked to stop now. Only at its eviction deadline is a budget overruled.

    Args:
        one: the pod.
        now: the time.
        last: when the next plan will come.
    """
    if not one.late(last):
        reason = (
            f"its eviction deadline comes at {one.eviction_deadline:%H:%M:%S}, and the API server would "
            "not take the evictions of all pods that are to be told by then"
        )
        return Evict(pod=one.pod, overrule=False, reason=reason)
    come = "has come" if one.late(now) else "comes before the next plan would"
    reason = f"its eviction deadline {come}: its time to stop is {one.stop}"
    if one.obeys:
        reason += "; its owner lets nobody overrule its budget: if that refuses, it ends with its instance"
    if (grace := one.clamped_grace(now)) is not None:
        reason += f"; {grace} s are left"
    return Evict(
        pod=one.pod,
        overrule=one.overrules_at(last),
        guarded=one.guarded,
        reason=reason,
    )
