"""Who asks for advice about a cluster, and when that was answered already.

The schedule asks every five minutes, because usage changes all the time. A change asks at once: somebody
accepts a recommendation, an executor reports, or a snapshot shows other nodes or other workloads. Requests
come twice, late and out of order; one run answers all that were made before it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from hashlib import sha256
from typing import Final

from plimsoll_service.wire.snapshot import Snapshot

CLOCKS_APART: Final = timedelta(seconds=1)
"""By how much the clocks of two functions may differ."""
LONGEST_RUN: Final = timedelta(seconds=130)
"""After so long a run that has not ended was killed: longer than the timeout of the function."""
LONGEST_PAUSE: Final = timedelta(hours=2)
"""Between two runs for a cluster whose runs are killed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AdviceRequest:
    """One message: advise this cluster."""

    tenant: str
    cluster: str
    at: datetime
    """When it was made: what was written before has to be seen."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LastAdvice:
    """The last run of the advice about a cluster."""

    at: datetime
    """When it began to read."""
    configuration: str
    """Of the snapshot that it was made of (`configuration_of`); empty: the next snapshot asks again."""
    began: datetime | None = None
    """When a later run began that has not ended."""
    unfinished: int = 0
    """How many runs have begun since one ended."""

    def begun(self, now: datetime) -> LastAdvice:
        """Return what is written before a run: one that is killed leaves that it was tried."""
        return replace(self, began=now, unfinished=self.unfinished + 1)

    def rests_until(self) -> datetime | None:
        """Return until when no run begins: another may be at work, or several in turn were killed."""
        if self.began is None:
            return None
        doublings = min(self.unfinished - 1, 10)
        return self.began + min(LONGEST_RUN * (1 << doublings), LONGEST_PAUSE)

    def answers(self, request: AdviceRequest) -> bool:
        """Whether the run saw all that was there when the request was made."""
        return self.at >= request.at + CLOCKS_APART


def configuration_of(snapshot: Snapshot) -> str:
    """Return a digest of what in a snapshot cannot wait for the schedule.

    That is which nodes there are and whether they take pods, what workloads ask for, and which volumes
    and load balancers there are. Usage differs in each snapshot, and where pods stand and how many
    there are changes whenever an autoscaler works: the schedule is soon enough for these.
    """
    digest = sha256()
    for line in sorted(_lines(snapshot)):
        digest.update(f"{line}\n".encode())
    return digest.hexdigest()


def _lines(snapshot: Snapshot) -> Iterator[str]:
    for node in snapshot.nodes:
        yield f"node {node.uid} {node.unschedulable}"
    for workload in snapshot.workloads:
        asked, most = workload.requests, workload.limits
        floor = sorted(workload.annotations.items())
        yield f"workload {workload.uid} {asked.cpu_m} {asked.memory} {most.cpu_m} {most.memory} {floor}"
    yield from _uids("volume", (each.uid for each in snapshot.volumes))
    yield from _uids("load balancer", (each.uid for each in snapshot.load_balancers))


def _uids(kind: str, uids: Iterable[str]) -> Iterator[str]:
    return (f"{kind} {uid}" for uid in uids)
