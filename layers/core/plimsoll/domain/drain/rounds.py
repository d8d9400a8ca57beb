"""In which order replacements are begun, where more are wanted than controllers make at once.

A quarter of each workload comes before the second quarter of any, so that nobody is left at zero for whom there was
time. It is a quarter and not one pod, because several pods of one owner cost a controller less than one pod for each of
several owners: the status of an owner and the endpoints of its Service are written once for all of them.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta

from plimsoll.domain.actions import Evict, Pace, Release
from plimsoll.domain.disruptions import EvictablePod, WorkloadDisruption
from plimsoll.domain.interruptions import is_near
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

    @property
    def eviction_deadline(self) -> datetime | None:
        """Until when its replacement has to serve."""
        return self._evictable.eviction_deadline if self._evictable else None

    def pressed(self, now: datetime) -> bool:
        """Whether its own deadline is near."""
        return self._evictable is not None and is_near(self._evictable.deadline, now)

    @property
    def _evictable(self) -> EvictablePod | None:
        turn = self.disruption.turn.get(self.pod.uid)
        return None if turn is None else self.disruption.evictable[turn]


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
        begun = max(0, disruption.replicas - disruption.unbegun)
        rounds: dict[int, list[Beginning]] = defaultdict(list)
        for place, one in enumerate(sorted(mine, key=urgency), begun):
            rounds[place // disruption.quarter].append(one)
        keyed += [
            ((number > 0, -one.pod.priority, number, urgency(some[0]), str(ref)), one)
            for number, some in rounds.items()
            for one in some
        ]
    return [one for _, one in sorted(keyed, key=lambda pair: pair[0])]


def too_late(beginnings: Iterable[Beginning], pace: Pace, now: datetime) -> dict[str, datetime]:
    """Return by uid the pods whose replacements will not serve by their eviction deadline, and when that is.

    Args:
        beginnings: in the order in which they are begun.
        pace: how fast replacements are made; where nobody knows, none is late.
        now: the time.
    """
    late: dict[str, datetime] = {}
    for place, one in enumerate(beginnings):
        end, seconds = one.eviction_deadline, pace.seconds_until(place)
        if seconds is None or end is None:
            continue
        if now + timedelta(seconds=seconds) + one.disruption.start > end:
            late[one.pod.uid] = end
    return late
