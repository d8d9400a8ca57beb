"""The planner of the batch queues beside a drill: every second one run, as events about Jobs would wake it."""

from __future__ import annotations

from datetime import timedelta
from typing import Final

from plimsoll.services.ports import Telemetry
from plimsoll_batch.adapters.kubernetes.cluster import KubernetesQueues
from plimsoll_batch.services.queues import CYCLE_SECONDS, QueueService
from plimsoll_simulation.rigs.simulated.network import SimulatedNetwork
from plimsoll_simulation.rigs.simulated.rig_cluster import SimulatedRigCluster
from plimsoll_simulation.rigs.simulated.time import GreenletWorkers, VirtualClock
from plimsoll_simulation.rigs.simulated.transport import SimulatedTransport

NAME: Final = "queues"
PERIOD: Final = timedelta(seconds=CYCLE_SECONDS)


class BatchQueues:
    """Plans the queues of one cluster of a drill."""

    def __init__(
        self,
        rig_cluster: SimulatedRigCluster,
        clock: VirtualClock,
        api_seconds: float,
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
        self._at_work = False

    def plan(self) -> None:
        """Run a cycle, unless the one before is still at work.

        Raises:
            PlimsollError: the cluster does not answer; the next run tries again.
        """
        if self._at_work:
            return
        self._at_work = True
        try:
            self._service.run(holder=NAME, seconds=CYCLE_SECONDS)
        finally:
            self._at_work = False
