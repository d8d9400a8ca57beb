"""The simulated rig: the services over a hollow cluster and a fleet in memory, in virtual time.

The same file, seed and responder give the same report, byte for byte: nothing here asks the real
time, the machine, or the order of a set.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta
from typing import Final

from plimsoll.domain.errors import PlimsollError
from plimsoll_testbed.measure.history import Recorder
from plimsoll_testbed.measure.listening import Listener, Progress, Quiet
from plimsoll_testbed.measure.measure import Measurement
from plimsoll_testbed.measure.report import Report, build_report
from plimsoll_testbed.measure.settling import settled
from plimsoll_testbed.measure.snapshot import Snapshot, snapshot_of
from plimsoll_testbed.rigs.resyncs import RESYNC, RESYNC_PHASE
from plimsoll_testbed.rigs.simulated.autoscaler import in_process
from plimsoll_testbed.rigs.simulated.fault_injector import FaultInjector
from plimsoll_testbed.rigs.simulated.network import SimulatedNetwork
from plimsoll_testbed.rigs.simulated.queues import NoticesQueue, WakeUpsQueue
from plimsoll_testbed.rigs.simulated.responders import RESPONDERS, ResponderContext
from plimsoll_testbed.rigs.simulated.rig_cluster import HollowRigCluster
from plimsoll_testbed.rigs.simulated.telemetry import DrillTelemetry
from plimsoll_testbed.rigs.simulated.time import Invocation, VirtualClock
from plimsoll_testbed.rigs.simulated.timeline import Timeline
from plimsoll_testbed.rigs.warmup import warm_up
from plimsoll_testbed.scenario.capabilities import refuse_unsupported
from plimsoll_testbed.scenario.drill import Drill

STEP: Final = timedelta(seconds=1)
"""How often it is looked whether the drill is settled."""
DOUBLED_WAKE_UP: Final = 0.7
"""By how much the second copy of a wake-up is late: it overtakes, and falls into running reconciles."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FaultHooks:
    """What a test may do to a drill, beyond the faults that a scenario can name."""

    on_call: Callable[[Invocation], None] | None = None
    """Called after every API call of an invocation, from time 0 on; it may kill it."""
    doubled: bool = False
    """Every notice and every wake-up comes twice, and out of order."""


def run(
    drill: Drill,
    *,
    responder: str,
    seed: int,
    listener: Listener | None = None,
    recorder: Recorder | None = None,
) -> Report:
    """Play a drill and return its report.

    Raises:
        BadInput: the rig cannot play it, or its cluster never becomes Ready.
    """
    simulation = Simulation(
        drill, responder=responder, seed=seed, listener=listener, recorder=recorder
    )
    try:
        return simulation.run()
    finally:
        simulation.close()


class Simulation:
    """One drill, played once."""

    def __init__(  # noqa: PLR0913 - what a drill is played with
        self,
        drill: Drill,
        *,
        responder: str,
        seed: int,
        listener: Listener | None = None,
        hooks: FaultHooks | None = None,
        recorder: Recorder | None = None,
    ) -> None:
        refuse_unsupported(drill.scenario, "simulated")
        scenario = drill.scenario
        self.drill = drill
        self.responder_name = responder
        self.seed = seed
        self.hooks = hooks or FaultHooks()
        self.clock = VirtualClock()
        self.clock.on_error = self._failed
        self._bugs: list[Exception] = []
        self.measurement = Measurement(recorder)
        self._listener = listener or Quiet()
        self._zero = self.clock.now()
        self.fault_injector = FaultInjector(seed)
        api_seconds = scenario.latency.api.total_seconds()
        self.rig_clusters = {
            spec.name: HollowRigCluster(
                spec, seed=seed, clock=self.clock, measurement=self.measurement
            )
            for spec in scenario.clusters
        }
        waits = {
            "notice_seconds": scenario.latency.notice.total_seconds(),
            "function_seconds": scenario.latency.function.total_seconds(),
        }
        self.telemetry = DrillTelemetry(self._say)
        self.wake_ups = WakeUpsQueue(self.clock, self._reconcile, **waits)
        self.responder = RESPONDERS[responder](
            ResponderContext(
                clock=self.clock,
                rig_clusters=self.rig_clusters,
                wire=SimulatedNetwork(
                    self.clock, api_seconds, self.measurement, self.fault_injector
                ),
                telemetry=self.telemetry,
                wake_ups=self._wake_up,
            )
        )
        self.notices = NoticesQueue(self.clock, self.responder.notices, **waits)
        self.timeline = Timeline(
            drill=drill,
            seed=seed,
            clock=self.clock,
            rig_clusters=self.rig_clusters,
            queue=self.notices,
            measurement=self.measurement,
            say=self._say,
            fault_injector=self.fault_injector,
            doubled=self.hooks.doubled,
        )
        self._autoscalers = [
            (in_process(rig_cluster, self.clock, api_seconds), rig_cluster.spec.autoscaler.scan)
            for rig_cluster in self.rig_clusters.values()
            if rig_cluster.spec.autoscaler is not None
        ]

    def run(self) -> Report:
        """Play the drill to its end and return the report.

        Raises:
            BadInput: a manifest is refused, or the cluster never becomes Ready.
        """
        scenario = self.drill.scenario
        for name, rig_cluster in self.rig_clusters.items():
            rig_cluster.set_up(self.drill.objects[name])
        # The first resync fills the node index; in a cluster that stands, it did so long ago.
        self.clock.spawn(self.clock.now(), self.responder.resync, "sweep")
        for autoscaler, scan in self._autoscalers:
            self.clock.every(scan, autoscaler.scan, "autoscaler")
        warm_up(self.clock, self.measurement.not_ready)
        self._zero = self.clock.now()
        self.measurement.begin(self._zero)
        self.clock.on_call = self._called
        self.clock.on_end = self.fault_injector.ended
        self.timeline.play(self._zero)
        first = self._zero + RESYNC_PHASE
        self.clock.at(first, lambda: self.clock.every(RESYNC, self.responder.resync, "sweep"))
        calm = False
        while not calm and self.clock.now() < self._zero + scenario.horizon:
            self.clock.run_until(min(self.clock.now() + STEP, self._zero + scenario.horizon))
            for error in (*self.timeline.errors, *self._bugs):
                raise error
            calm = self._settled()
            self._listener.progress(self._progress())
            self._listener.show(self._snapshot)
        self.responder.hand_in(self.measurement)
        return build_report(
            scenario,
            self.measurement,
            self.measurement.figures(
                self.clock.now(), settled=calm, spot_price=scenario.prices.spot
            ),
            rig="simulated",
            responder=self.responder_name,
            seed=self.seed,
        )

    def close(self) -> None:
        """Drop what still runs."""
        self.clock.close()

    def restless(self) -> list[str]:
        """Return in words why the drill cannot end yet, but for its timeline."""
        words = self.measurement.restless()
        for rig_cluster in self.rig_clusters.values():
            words += rig_cluster.unfinished()
        if not self.timeline.over:
            words.append("the owner still waits for the API server")
        if self.notices.in_flight:
            words.append(f"{self.notices.in_flight} notices are on their way")
        if self.wake_ups.running:
            words.append("a reconcile is at work")
        return words

    def _settled(self) -> bool:
        elapsed = self.clock.now() - self._zero
        timeline = self.drill.scenario.timeline
        # Cheap first: while the timeline runs nothing else needs to be looked at.
        return settled(timeline, elapsed, ()) and not self.restless()

    def _failed(self, invocation: Invocation) -> None:
        """Tell of a run that failed. What is no error of ours by type is a bug, and ends the drill.

        On AWS such a run would come back and perhaps work; here it shall be seen.
        """
        error = invocation.error
        self._say(f"warning: {invocation.name} failed: {type(error).__name__}: {error}")
        if error is not None and not isinstance(error, PlimsollError):
            self._bugs.append(error)

    def _called(self, invocation: Invocation) -> None:
        self.fault_injector.called(invocation)
        if self.hooks.on_call is not None:
            self.hooks.on_call(invocation)

    def _reconcile(self, cluster: str, holder: str) -> object:
        return self.responder.reconcile(cluster, holder)

    def _wake_up(self, cluster: str, delay_seconds: int) -> None:
        self.wake_ups.send(cluster, delay_seconds)
        if self.hooks.doubled:
            self.wake_ups.send(cluster, delay_seconds + DOUBLED_WAKE_UP)

    def _say(self, what: str) -> None:
        self._listener.say((self.clock.now() - self._zero).total_seconds(), what)

    def _snapshot(self) -> Snapshot:
        return snapshot_of(self.rig_clusters, self.measurement, self.clock.now(), self._zero)

    def _progress(self) -> Progress:
        horizon = self.drill.scenario.horizon
        return Progress(
            seconds=(self.clock.now() - self._zero).total_seconds(),
            of_seconds=horizon.total_seconds(),
        )
