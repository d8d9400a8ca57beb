"""Tells the service at once that a Job of a batch queue changed, so that the planner need not wait for its schedule.

It says that something changed and not what: the planner reads the cluster itself. However many Jobs change, it is
said once in a few seconds. Where there is no agent, or no service, the schedule remains.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Final

from msgspec import Raw, Struct

from plimsoll.adapters.kubernetes import schema
from plimsoll.adapters.kubernetes.collection import Collection
from plimsoll.adapters.kubernetes.decoding import decoded, naming
from plimsoll.adapters.kubernetes.requests import Requests
from plimsoll.domain.registry import JOB_ANNOTATIONS, JOB_QUEUE
from plimsoll.services.ports import Clock
from plimsoll_agent.calls import LIST_JOBS
from plimsoll_agent.taint_forwarder import Followed

APART: Final = timedelta(seconds=5)
"""Between two times that it is said."""
_ENDS: Final = {"Complete", "Failed"}


class _Spec(Struct, rename="camel", omit_defaults=True, gc=False):
    parallelism: schema.Whole = 1


class _Status(Struct, rename="camel", omit_defaults=True, gc=False):
    failed: schema.Whole = 0
    conditions: schema.Conditions = ()


_Job = schema.Object[_Spec, _Status]


class QueueChanges:
    """Follows the Jobs of a cluster that name a queue.

    Args:
        requests: Makes the calls.
        clock: The time.
        say: Tells the service.
        warn: Told of Jobs that cannot be read, and where there is no right to watch.
    """

    def __init__(
        self,
        requests: Requests,
        clock: Clock,
        say: Callable[[], object],
        warn: Callable[[str], None],
    ) -> None:
        self._clock = clock
        self._say = say
        self._jobs = Followed(Collection(LIST_JOBS, _seen, labels=JOB_QUEUE), requests, clock, warn)
        self._said: frozenset[object] = frozenset()
        """What stood there when it was said last."""
        self._at = datetime.min.replace(tzinfo=UTC)

    def round(self) -> float:
        """Say that something changed, and return in how many seconds to look again.

        Raises:
            PlimsollError: the cluster or the service cannot be reached; the next round goes on.
        """
        pause = self._jobs.look()
        seen, now = frozenset(self._jobs.objects), self._clock.now()
        if seen != self._said and now - self._at >= APART:
            self._say()
            # Noted after the service was told. A change within `APART`
            # is not lost: it still differs from the state that was told.
            self._said, self._at = seen, now
        return pause


@naming("Job")
def _seen(obj: Raw) -> object:
    """Return of a Job what a planner has to know soon: that it is there, what its owner asks, how it fares."""
    job = decoded(obj, _Job)
    meta = job.metadata
    owners = {k: v for k, v in meta.annotations.items() if k not in JOB_ANNOTATIONS}
    ended = any(c.type in _ENDS and c.status == "True" for c in job.status.conditions)
    marks = frozenset(owners.items()), frozenset(meta.labels.items())
    return (meta.uid, hash(marks), job.spec.parallelism, job.status.failed, ended)
