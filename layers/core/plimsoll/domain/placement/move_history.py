"""The mark of voluntary moves: when a pod was moved, out of which spread group, and whether in vain.

A pod is marked as it is released, and its replacement inherits the mark. So the budget of a cluster
and the pauses of a workload outlive every reconcile. Whoever may write annotations on pods can forge
marks. They hold back moves of those pods' own workload. In great number they use up the budget of
the cluster, which moves are held back by as they are by any pod that is Pending.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Final, Self, override

from plimsoll.domain.interruptions import DAY, HOUR
from plimsoll.domain.kubernetes import MOVED, Pod
from plimsoll.domain.observation import Observation

RETURNED: Final = "any-on-demand"
"""The origin of a pod that no floor spreads, and that was moved from on-demand to spot."""
RESTS: Final = timedelta(hours=6)
"""How long a pod that was moved, and those that replace it one after the other, are not moved to spot again."""
PAUSES: Final = (timedelta(minutes=5), timedelta(hours=2), DAY)
"""How long a workload is left alone after the first, the second and each later move in vain."""
_MARK: Final = re.compile(r"([1-9]) (\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ) ([a-z0-9-]{1,63})", re.ASCII)


@dataclass(frozen=True, slots=True)
class Mark:
    """One voluntary move."""

    count: int
    """How many moves out of that group it makes in succession, each after one in vain."""
    at: datetime
    origin: str
    """The spread group out of which the pod was moved: one that stands there was moved in vain."""

    @classmethod
    def of(cls, pod: Pod) -> Self | None:
        """Return the mark of a pod; None where there is none that makes sense."""
        told = pod.annotations.get(MOVED)
        found = None if told is None else _MARK.fullmatch(told)
        if found is None:
            return None
        try:
            return cls(int(found[1]), datetime.fromisoformat(found[2]), found[3])
        except ValueError:
            return None

    @property
    def until(self) -> datetime:
        """When the next move may be tried, if this one was in vain."""
        return self.at + PAUSES[min(self.count, len(PAUSES)) - 1]

    @override
    def __str__(self) -> str:
        return f"{self.count} {self.at.astimezone(UTC):%Y-%m-%dT%H:%M:%SZ} {self.origin}"


def next_mark(group: str, pods: Iterable[Pod], now: datetime) -> Mark | None:
    """Return the mark of a move out of a group; None while the pause after one in vain lasts.

    Args:
        group: the fullest spread group of a workload.
        pods: all pods of the workload that stand there.
        now: the time.
    """
    marks = [_lately(pod, now, 2 * DAY) for pod in pods if MOVED in pod.annotations]
    vain = [mark for mark in marks if mark is not None and mark.origin == group]
    if any(mark.until > now for mark in vain):
        return None
    last = max((mark.count for mark in vain), default=0)
    return Mark(min(len(PAUSES), last + 1), now, group)


def moves_within_hour(seen: Observation, now: datetime) -> int:
    """Return how many moves of the last hour the pods of all workloads tell of.

    A moved pod and its replacement have the same mark, and a workload moves one pod at a time.
    """
    marks = ((seen.workload_of(pod), _lately(pod, now, HOUR)) for pod in seen.moved)
    return len({(workload, mark) for workload, mark in marks if mark is not None})


def last_move(pods: Iterable[Pod], now: datetime) -> datetime | None:
    """Return when the last of some pods was moved; None: none within six hours."""
    marks = (_lately(pod, now, RESTS) for pod in pods)
    return max((mark.at for mark in marks if mark is not None), default=None)


def rests(pod: Pod, now: datetime) -> bool:
    """Whether a pod was moved within six hours, or replaces one that was."""
    return _lately(pod, now, RESTS) is not None


def bequeaths(pod: Pod, now: datetime) -> bool:
    """Whether the replacement of a released pod is to inherit its mark.

    It is where placement moved the pod. It is too where a pod returned to spot lately and is interrupted there: else a
    workload would go to and fro as often as a pool comes and goes.
    """
    mark = _lately(pod, now, RESTS)
    return pod.released_for_placement or (mark is not None and mark.origin == RETURNED)


def heir_of(moved: Pod, pods: Iterable[Pod]) -> Pod | None:
    """Return the replacement that is to inherit the mark of a released pod; None where none is.

    Args:
        moved: the released pod.
        pods: all pods of its workload.
    """
    mark = Mark.of(moved)
    if mark is None:
        return None
    made = [p for p in pods if not p.released and p.deleting is None and p.created >= mark.at]
    if any(pod.annotations.get(MOVED) == moved.annotations[MOVED] for pod in made):
        return None
    made = [pod for pod in made if MOVED not in pod.annotations]
    return min(made, key=lambda pod: (pod.created, pod.uid), default=None)


def _lately(pod: Pod, now: datetime, within: timedelta) -> Mark | None:
    """Return the mark of a pod that was moved within some time; one of the future is forged."""
    mark = Mark.of(pod)
    return mark if mark and now - within < mark.at <= now else None
