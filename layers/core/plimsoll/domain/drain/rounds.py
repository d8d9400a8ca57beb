"""In which order replacements are begun, where more are wanted than controllers make at once.

A quarter of each workload comes before the second quarter of any, so that nobody is left at zero for whom there was
time. It is a quarter and not one pod, because several pods of one owner cost a controller less than one pod for each of
several owners: the status of an owner and the endpoints of its Service are written once for all of them.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from plimsoll.domain.actions import Evict, Release
from plimsoll.domain.disruptions import WorkloadDisruption
from plimsoll.domain.kubernetes import Pod, Ref


@dataclass(frozen=True, slots=True, kw_only=True)
class Beginning:
    """An action that begins a replacement, if its turn has come."""

    disruption: WorkloadDisruption
    action: Release | Evict
    nodes: frozenset[str]

    @property
    def pod(self) -> Pod:
        """The pod to be replaced."""
        return self.action.pod


def in_rounds(beginnings: Iterable[Beginning], turn: Mapping[str, int]) -> list[Beginning]:
    """Return them in order: the first quarters of all, then by priority, and quarter by quarter.

    In a quarter workload by workload, first those with a pod on the most urgent node: so nodes are finished one
    after the other.

    Args:
        beginnings: what would begin a replacement now.
        turn: node -> its place in the order of urgency.
    """
    of: dict[Ref, list[Beginning]] = defaultdict(list)
    for one in beginnings:
        of[one.disruption.ref].append(one)

    def urgency(one: Beginning) -> int:
        return turn.get(one.pod.node or "", len(turn))

    keyed: list[tuple[tuple[bool, int, int, int, str], Beginning]] = []
    for ref, mine in of.items():
        disruption = mine[0].disruption
        unbegun = sum(not one.pod.released for one in disruption.evictable)
        begun = max(0, disruption.replicas - unbegun)
        quarter = max(1, -(-disruption.replicas // 4))
        rounds: dict[int, list[Beginning]] = defaultdict(list)
        for place, one in enumerate(sorted(mine, key=urgency), begun):
            rounds[place // quarter].append(one)
        keyed += [
            ((number > 0, -one.pod.priority, number, urgency(some[0]), str(ref)), one)
            for number, some in rounds.items()
            for one in some
        ]
    return [one for _, one in sorted(keyed, key=lambda pair: pair[0])]
