"""The simulated rig: the services over a fake cluster and a fleet in memory, in virtual time.

The same file, seed and responder give the same report, byte for byte: nothing here asks the real
time, the machine, or the order of a set.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import partial
from typing import Final, Unpack, override

from plimsoll.domain.errors import PlimsollError
from plimsoll.domain.registry import RESYNC_EVERY
from plimsoll.services.ports import FrameSink
from plimsoll.services.retry_policy import NOTICES, RESYNCS, WAKE_UPS
from plimsoll_simulation.measure.report import Report
from plimsoll_simulation.rigs.registry import Rig
from plimsoll_simulation.rigs.run import PLACEMENT, RESYNC_PHASE, How, Run, rig_of_runs
from plimsoll_simulation.rigs.simulated.autoscaler import in_process
from plimsoll_simulation.rigs.simulated.batch_queues import NAME, PERIOD, BatchQueues
from plimsoll_simulation.rigs.simulated.fault_injector import FaultInjector
from plimsoll_simulation.rigs.simulated.network import SimulatedNetwork
from plimsoll_simulation.rigs.simulated.other_controllers import (
    OTHER_CONTROLLERS,
    other_controllers_of,
)
from plimsoll_simulation.rigs.simulated.queues import BATCH, SimulatedQueue
from plimsoll_simulation.rigs.simulated.responders import RESPONDERS, Responder, ResponderContext
from plimsoll_simulation.rigs.simulated.rig_cluster import SimulatedRigCluster
from plimsoll_simulation.rigs.simulated.telemetry import DrillTelemetry
from plimsoll_simulation.rigs.simulated.time import Invocation, VirtualClock
from plimsoll_simulation.rigs.warmup import warm_up
from plimsoll_simulation.scenario.drill import Drill

STEP: Final = timedelta(seconds=1)
"""How often it is looked whether the drill is settled."""
CALLS_OF_THE_SCHEDULE: Final = 2
"""It reads the registry and sends, before a resync begins."""
DOUBLED: Final = 0.7
"""Seconds by which the second copy of a message is late: it overtakes, and falls into running invocations."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FaultHooks:
    """What a test may do to a drill, beyond the faults that a scenario can name."""

    on_call: Callable[[Invocation], None] | None = None
    """Called after every API call of an invocation, from time 0 on; it may kill it."""
    on_answer: Callable[[str, Callable[[], object], object], None] | None = None
    """Told of each call that an invocation made, what it did, and its answer."""
    doubled: bool = False
    """Every notice, wake-up and resync comes twice, and out of order."""
    scheduler_seed: int = 0
    """Draws a node for a pod among those that score alike."""


class Simulation(Run):
    """One drill, played once in virtual time."""

    rig_clusters: Mapping[str, SimulatedRigCluster]
    responder: Responder

    def __init__(
        self,
        drill: Drill,
        *,
        hooks: FaultHooks | None = None,
        frames: FrameSink | None = None,
        **how: Unpack[How],
    ) -> None:
        super().__init__(drill, clock=VirtualClock(), rig="simulated", **how)
        scenario = drill.scenario
        self.hooks = hooks or FaultHooks()
        self._exits.callback(self.clock.close)
        self.clock.on_error = self._failed
        self._bugs: list[Exception] = []
        self.fault_injector = FaultInjector(self.seed)
        api_seconds = scenario.latency.api.total_seconds()
        self.rig_clusters = {
            spec.name: SimulatedRigCluster(
                spec,
                seed=self.seed,
                scheduler_seed=self.hooks.scheduler_seed,
                clock=self.clock,
                measurement=self.measurement,
            )
            for spec in scenario.clusters
        }
        queue = partial(
            SimulatedQueue,
            clock=self.clock,
            notice_seconds=scenario.latency.notice.total_seconds(),
            function_seconds=scenario.latency.function.total_seconds(),
        )
        self.telemetry = DrillTelemetry(self.say)
        self.wake_ups = queue(
            function="drains",
            handle=lambda clusters, holder: [self.responder.reconcile(clusters[0], holder)],
            policy=WAKE_UPS,
        )
        self.resyncs = queue(
            function="sweep",
            handle=lambda messages, _: [self.responder.resync(messages[0])],
            policy=RESYNCS,
        )
        self.responder = RESPONDERS[self.responder_name](
            ResponderContext(
                clock=self.clock,
                rig_clusters=self.rig_clusters,
                wire=SimulatedNetwork(
                    self.clock,
                    api_seconds,
                    self.measurement,
                    self.fault_injector,
                    self.hooks.on_answer,
                ),
                shifts=lambda: [*self.timeline.shifts],
                telemetry=self.telemetry,
                wake_ups=self._wake_up,
                resyncs=self._resync,
                frames=frames,
            )
        )
        self.notices = queue(
            function="notices",
            handle=lambda bodies, _: self.responder.notices(bodies),
            policy=NOTICES,
            batch=BATCH,
        )
        self.timeline = self._timeline(
            self.notices, self.fault_injector, doubled=self.hooks.doubled
        )
        self._autoscalers = [
            (in_process(rig_cluster, self.clock, api_seconds), rig_cluster.spec.autoscaler.scan)
            for rig_cluster in self.rig_clusters.values()
            if rig_cluster.spec.autoscaler is not None
        ]
        self._batch_queues = [
            BatchQueues(
                rig_cluster,
                self.clock,
                api_seconds,
                scenario.latency.notice + scenario.latency.function,
                self.telemetry,
            )
            for rig_cluster in self.rig_clusters.values()
            if rig_cluster.spec.queues is not None
        ]

    @override
    def prepare(self) -> None:
        for name, rig_cluster in self.rig_clusters.items():
            rig_cluster.set_up(self.drill.objects[name])
        # The first resync fills the node index; in a cluster that stands, it did so long ago.
        self.clock.spawn(self.clock.now(), self.responder.schedule, "schedule")
        self.clock.spawn(self.clock.now(), self.responder.place, "placement")
        for autoscaler, scan in self._autoscalers:
            self.clock.every(scan, autoscaler.scan, "autoscaler")
        for queues in self._batch_queues:
            self.clock.every(PERIOD, queues.plan, NAME)
        for period, other_controller in other_controllers_of(
            self.rig_clusters.values(), OTHER_CONTROLLERS, self.clock
        ):
            self.other_controllers.append(other_controller)
            self.clock.every(period, other_controller.act, other_controller.name)
        warm_up(self.clock, self.measurement.not_ready)

    @override
    def _begin(self, zero: datetime) -> None:
        for rig_cluster in self.rig_clusters.values():
            rig_cluster.begin()
        self.clock.on_call = self._called
        self.clock.on_end = self.fault_injector.ended
        schedule = partial(self.clock.every, RESYNC_EVERY, self.responder.schedule, "schedule")
        latency = self.drill.scenario.latency
        on_the_way = latency.notice + latency.function + CALLS_OF_THE_SCHEDULE * latency.api
        self.clock.at(zero + RESYNC_PHASE - on_the_way, schedule)
        place = partial(self.clock.every, PLACEMENT, self.responder.place, "placement")
        self.clock.at(zero + RESYNC_PHASE, place)

    @override
    def _pass_time(self) -> None:
        left = self.drill.scenario.horizon - self._elapsed()
        self.clock.run_until(self.clock.now() + min(STEP, left))
        for bug in self._bugs:
            raise bug

    @override
    def restless(self) -> list[str]:
        words = super().restless()
        if self.notices.in_flight:
            words.append(f"{self.notices.in_flight} notices are on their way")
        if self.wake_ups.running:
            words.append("a reconcile is at work")
        return words

    @override
    def report(self, *, settled: bool) -> Report:
        self.responder.hand_in(self.measurement)
        return super().report(settled=settled)

    def _failed(self, invocation: Invocation) -> None:
        """Tell of a run that failed. What is no error of ours by type is a bug, and ends the drill.

        On AWS such a run would come back and perhaps work; here it shall be seen.
        """
        error = invocation.error
        self.say(f"warning: {invocation.name} failed: {type(error).__name__}: {error}")
        if error is not None and not isinstance(error, PlimsollError):
            self._bugs.append(error)

    def _called(self, invocation: Invocation) -> None:
        self.fault_injector.called(invocation)
        if self.hooks.on_call is not None:
            self.hooks.on_call(invocation)

    def _wake_up(self, cluster: str, delay_seconds: int) -> None:
        self.wake_ups.send(cluster, delay_seconds=delay_seconds)
        if self.hooks.doubled:
            self.wake_ups.send(cluster, delay_seconds=delay_seconds + DOUBLED)

    def _resync(self, message: str) -> None:
        self.resyncs.send(message)
        if self.hooks.doubled:
            self.resyncs.send(message, delay_seconds=DOUBLED)


run: Rig = rig_of_runs(Simulation)
