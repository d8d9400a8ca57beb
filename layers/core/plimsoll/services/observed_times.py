"""Remembers how long the pods of workloads took, and tells it.

Nothing waits for it: what cannot be read is assumed, and what cannot be written is seen again at another pod.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from functools import partial
from itertools import batched
from typing import Final

from plimsoll.domain.errors import PlimsollError
from plimsoll.domain.kubernetes import Ref, class_of, gang_of
from plimsoll.domain.observation import (
    Observation,
    Samples,
    WorkloadTimes,
    chosen_workloads,
    times_are_kept,
)
from plimsoll.services.ports import Clock, Telemetry, Times, Workers

WORKLOADS_PER_CALL: Final = 100
"""Workloads of one call to DynamoDB."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ObservedTimes:
    """What is remembered of the pods of all clusters."""

    times: Times
    clock: Clock
    workers: Workers
    telemetry: Telemetry

    def of(self, cluster: str, workloads: Collection[Ref]) -> Mapping[Ref, WorkloadTimes] | None:
        """Return what is known of workloads; None where it cannot be read now."""
        now, found = self.clock.now(), self._read(cluster, [*filter(times_are_kept, workloads)])
        return None if found is None else {ref: told.times(now) for ref, told in found.items()}

    def remember(self, cluster: str, told: Mapping[Ref, Samples]) -> None:
        """Merge what pods told, of a bounded number of workloads. What is known already is not written again."""
        turn = chosen_workloads(told, self.clock.now())
        # One call reads many workloads, and most samples are known: each merge would cost a read and a write.
        known = self._read(cluster, turn)
        if known is None:
            return
        news = [w for w in turn if (had := known.get(w, Samples())).merged(told[w]) != had]
        for answer in self.workers.run(
            [partial(self.times.merge, cluster, workload, told[workload]) for workload in news]
        ):
            if isinstance(answer, PlimsollError):
                self.telemetry.warn("observed times not written", because=str(answer))
            elif isinstance(answer, Exception):
                raise answer

    def _read(self, cluster: str, workloads: Collection[Ref]) -> Mapping[Ref, Samples] | None:
        found: dict[Ref, Samples] = {}
        for answer in self.workers.run(
            [
                partial(self.times.read, cluster, some)
                for some in batched(workloads, WORKLOADS_PER_CALL, strict=False)
            ]
        ):
            match answer:
                case PlimsollError():
                    self.telemetry.warn("observed times not read", because=str(answer))
                    return None
                case Exception():
                    raise answer
                case _:
                    found |= answer
        return found


@dataclass(slots=True)
class KnownTimes:
    """What one reconcile, or one run of the queues, has read: each workload is asked for once.

    Once they cannot be read they are not asked for again: no drain waits for a database.
    """

    _read: dict[Ref, WorkloadTimes] = field(default_factory=dict)
    _readable: bool = True

    def of(
        self, observed: ObservedTimes, cluster: str, workloads: Collection[Ref]
    ) -> Mapping[Ref, WorkloadTimes]:
        """Return what is known of workloads, these among them unless they could not be read."""
        unknown = {*workloads} - self._read.keys()
        if unknown and self._readable:
            found = observed.of(cluster, unknown)
            self._readable = found is not None
            if found is not None:
                self._read |= dict.fromkeys(unknown, WorkloadTimes()) | dict(found)
        return self._read


def disrupted(seen: Observation) -> frozenset[Ref]:
    """Return the workloads, and the classes of gangs, with pods on nodes that have an interruption."""
    names = {node.name for node in seen.nodes if node.interruption is not None}
    if not names:
        return frozenset()
    pods = [pod for pod in seen.pods if pod.node in names]
    gangs = {class_of(gang) for pod in pods if (gang := gang_of(pod)) is not None}
    return frozenset(map(seen.workload_of, pods)) | gangs
