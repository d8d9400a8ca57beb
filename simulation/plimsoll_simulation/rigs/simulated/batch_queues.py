"""The stack of the batch queues beside a drill: it plans once a minute, and is woken by notices and changed Jobs."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Final

from plimsoll.domain.kubernetes import INTERRUPTION
from plimsoll.services.ports import Telemetry
from plimsoll_batch.adapters.kubernetes.cluster import KubernetesQueues
from plimsoll_batch.domain.names import QUEUE
from plimsoll_batch.services.queues import PLAN_SECONDS, QueueService
from plimsoll_batch.services.wake_ups import AFTER_CHANGE_SECONDS, AFTER_NOTICE_SECONDS, SHARED
from plimsoll_simulation.fake_cluster.edits import Json, look
from plimsoll_simulation.fake_cluster.store import Change
from plimsoll_simulation.rigs.simulated.network import SimulatedNetwork
from plimsoll_simulation.rigs.simulated.rig_cluster import SimulatedRigCluster
from plimsoll_simulation.rigs.simulated.time import GreenletWorkers, VirtualClock
from plimsoll_simulation.rigs.simulated.transport import SimulatedTransport

NAME: Final = "queues"
PERIOD: Final = timedelta(minutes=1)
"""Of the schedule."""


class BatchQueues:
    """Plans the queues of one cluster of a drill.

    Args:
        rig_cluster: the cluster.
        clock: its time.
        api_seconds: what a call takes.
        way: from a wake-up that is due to the start of the planner.
        telemetry: hears what the planner says.
    """

    def __init__(
        self,
        rig_cluster: SimulatedRigCluster,
        clock: VirtualClock,
        api_seconds: float,
        way: timedelta,
        telemetry: Telemetry,
    ) -> None:
        workers = GreenletWorkers(clock)
        wire = SimulatedNetwork(clock, api_seconds)
        transport = SimulatedTransport(rig_cluster, clock, wire, NAME)
        self._service = QueueService(
            name=rig_cluster.name,
            cluster=KubernetesQueues.of(transport, rig_cluster.name, clock, workers),
            clock=clock,
            workers=workers,
            telemetry=telemetry,
        )
        self._clock = clock
        self._way = way
        self._at_work = False
        self._woken: dict[tuple[int, ...], datetime] = {}
        rig_cluster.cluster.store.subscribe(self._observe)

    def plan(self) -> None:
        """Plan for most of a minute at the longest, unless a planner is at work.

        Raises:
            PlimsollError: the cluster does not answer; the next run tries again.
        """
        if self._at_work:
            return
        self._at_work = True
        try:
            self._service.run(holder=NAME, seconds=PLAN_SECONDS)
        finally:
            self._at_work = False

    def _observe(self, change: Change) -> None:
        if change.resource == "jobs" and QUEUE in look(
            change.object, "metadata", "labels", default={}
        ):
            self._wake(AFTER_CHANGE_SECONDS)
        elif change.resource == "nodes" and _interruption(change.object) not in {
            None,
            _interruption(change.before or {}),
        }:
            self._wake(AFTER_NOTICE_SECONDS)

    def _wake(self, after: tuple[int, ...]) -> None:
        now = self._clock.now()
        if self._woken.get(after, now - SHARED) + SHARED > now:
            return
        self._woken[after] = now
        for seconds in after:
            self._clock.spawn(now + self._way + timedelta(seconds=seconds), self.plan, NAME)


def _interruption(node: Json) -> str | None:
    found: str | None = look(node, "metadata", "annotations", default={}).get(INTERRUPTION)
    return found
