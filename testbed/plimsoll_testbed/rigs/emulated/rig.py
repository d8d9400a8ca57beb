"""The emulated rig: the built template deployed on an emulated AWS, in wall-clock time.

Events travel over the real bus to functions that run as Lambda functions; these reach the clusters
over HTTP with the official client, and the fleet over AWS's protocols. Only what they act on
is a model. On this rig it is the same model as the simulated rig's; `plimsoll_testbed.rigs.cluster` puts a
real control plane in the place of its clusters.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from functools import partial
from typing import Any, Final, Unpack, override

from plimsoll.adapters.clock import SystemClock
from plimsoll.domain.errors import Refused
from plimsoll.domain.registry import RESYNC_EVERY
from plimsoll_simulation.fake_aws.fleet import Fleet
from plimsoll_simulation.measure.report import Report
from plimsoll_simulation.rigs.access import Access
from plimsoll_simulation.rigs.commondrain import ThreadedDrain
from plimsoll_simulation.rigs.registry import Rig
from plimsoll_simulation.rigs.run import RESYNC_PHASE, How, Run, rig_of_runs, told
from plimsoll_simulation.rigs.simulated.other_controllers import EVICTORS, other_controllers_of
from plimsoll_simulation.rigs.simulated.other_controllers.other_controller import OtherController
from plimsoll_simulation.rigs.threads import Threads
from plimsoll_simulation.scenario.drill import Drill
from plimsoll_simulation.scenario.timeline import Entry, FaultEntry
from plimsoll_testbed.rigs.emulated.awsfleet import AwsFleet, FleetServer
from plimsoll_testbed.rigs.emulated.bus import Bus
from plimsoll_testbed.rigs.emulated.clusters import Clusters, FakeClusters
from plimsoll_testbed.rigs.emulated.emulator import Emulator
from plimsoll_testbed.rigs.emulated.kills import Kills
from plimsoll_testbed.rigs.emulated.ministack import MiniStack
from plimsoll_testbed.rigs.emulated.stack import Stack, place, resync
from plimsoll_testbed.rigs.emulated.walltime import WallTime

POLL_SECONDS: Final = 0.25
"""Seconds between two updates of the view, and checks for the end."""


class Emulation(Run):
    """One drill, played once on an emulated AWS.

    Args:
        drill: what is played.
        clusters: makes its clusters.
        emulators: the kind of emulated AWS.
        rig: its name.
        how: see `Run`.
    """

    def __init__(
        self,
        drill: Drill,
        *,
        clusters: Callable[..., Clusters[Any]] = FakeClusters,
        emulators: type[Emulator] = MiniStack,
        rig: str = "emulated",
        **how: Unpack[How],
    ) -> None:
        self._time = WallTime(SystemClock())
        super().__init__(drill, clock=self._time.clock, rig=rig, **how)
        self._still = self._time.lock
        self._emulators = emulators
        self._started = time.monotonic()
        self._drain: ThreadedDrain | None = None
        self._acting = Threads()
        self._clusters = clusters(
            drill=drill,
            seed=self.seed,
            time=self._time,
            measurement=self.measurement,
            exits=self._exits,
            say=self.say,
        )
        self.rig_clusters = self._clusters.rig_clusters

    @override
    def prepare(self) -> None:
        with told(self.say, "made the cluster ready"):
            self._clusters.make_ready()
        fleets = [rig_cluster.fleet for rig_cluster in self.rig_clusters.values()]
        aws = self._aws(fleets)
        emulator = self._emulators(endpoints=aws.endpoints)
        with told(self.say, f"started {emulator.name}"):
            self._exits.enter_context(emulator)
        with told(self.say, "deployed the built template with sam deploy"):
            self._deploy(emulator)
        self._stack = Stack(emulator, aws)
        if self.responder_name == "drain":
            self._drain = self._exits.enter_context(
                ThreadedDrain(self.rig_clusters, self._ways(), SystemClock())
            )
        if self.responder_name == "plimsoll":
            self._install(emulator)
        self._kills = self._exits.enter_context(Kills(emulator, self.seed, SystemClock(), self.say))
        self._bus = self._exits.enter_context(self._event_bus(emulator))
        self.timeline = self._timeline(self._bus, self._kills)

    # What differs where its clusters are in several accounts.

    def _aws(self, fleets: Sequence[Fleet]) -> FleetServer:
        """Serve the fleets."""
        return self._served(fleets)

    def _served(self, fleets: Sequence[Fleet]) -> AwsFleet:
        return self._exits.enter_context(
            AwsFleet(
                fleets, clock=self._time.catch_up, lock=self._time.lock, changed=self.clock.touch
            )
        )

    def _deploy(self, emulator: Emulator) -> None:
        """Deploy what is deployed before clusters are registered."""
        emulator.deploy(AcceptDrills="true", Size="small")

    def _register(self, name: str, way: Access) -> None:
        self._stack.register(name, way)

    def _event_bus(self, emulator: Emulator) -> Bus:
        hears = (lambda _: None) if self._drain is None else self._drain.notice
        return Bus(emulator.client("events"), self.clock, emulator.reach, hears)

    def _install(self, emulator: Emulator) -> None:
        with told(self.say, "registered the clusters, resynced and placed each once"):
            for name, way in self._ways().items():
                self._register(name, way)
                resync(emulator, name)
            place(emulator)
        with told(self.say, "started the functions' workers"):
            emulator.warm("NoticesFunction", 3)
            emulator.warm("DrainsFunction", 2)

    def _ways(self) -> Mapping[str, Access]:
        """Let the responder into the clusters, and return how it gets there."""
        return {name: self._clusters.open(name, self.responder_name) for name in self.rig_clusters}

    @override
    def begin(self) -> None:
        if self.responder_name == "plimsoll" and any(
            map(_loses_notices, self.drill.scenario.timeline)
        ):
            with told(
                self.say, "waited until the next resync is as far off as on the simulated rig"
            ):
                self._await_resync()
        self._time.catch_up()
        super().begin()

    def _await_resync(self) -> None:
        """Return so long before a resync that it comes as late as on the simulated rig.

        Raises:
            Refused: the schedule brings none.
        """
        before = self._stack.asked
        end = time.monotonic() + (2 * RESYNC_EVERY).total_seconds()
        while self._stack.asked == before:
            if time.monotonic() > end:
                raise Refused("the schedule of the deployed stack brings no sweep")
            time.sleep(POLL_SECONDS)
        time.sleep((RESYNC_EVERY - RESYNC_PHASE).total_seconds())

    @override
    def say(self, what: str, at: datetime | None = None) -> None:
        if self._zero is None:  # the clusters' time is not the wall's yet
            self._listener.say(time.monotonic() - self._started, what)
        else:
            super().say(what, at)

    @override
    def _begin(self, zero: datetime) -> None:
        self._clusters.begin()
        self._exits.enter_context(self._acting)
        for period, other_controller in other_controllers_of(
            self.rig_clusters.values(), EVICTORS, self.clock
        ):
            self.other_controllers.append(other_controller)
            self._acting.spawn(
                partial(self._act, other_controller, period.total_seconds()), other_controller.name
            )

    def _act(self, other_controller: OtherController[Any], period: float) -> None:
        """Let another controller look again and again; nothing else changes while it decides."""
        while not self._acting.ended.is_set():
            with self._time.lock:
                self._time.catch_up()
                other_controller.act()
            self._acting.ended.wait(period)

    @override
    def _pass_time(self) -> None:
        time.sleep(POLL_SECONDS)
        for at, line in self._stack.news():
            self.say(line, at)
        parts = (self._bus, self._time, self._drain, self._kills, self._acting)
        errors = (part.error for part in parts if part is not None)
        for error in (*self._clusters.errors, *errors):
            if error is not None:
                raise error

    @override
    def restless(self) -> list[str]:
        return super().restless() + ["notices are on their way"] * self._bus.busy

    @override
    def report(self, *, settled: bool) -> Report:
        """Return what came of it.

        Raises:
            Refused: a function failed during the drill, and not by a fault.
        """
        if self.responder_name == "plimsoll":
            self._stack.hand_in(list(self.rig_clusters), self.measurement)
        if self._zero is not None:
            self._clusters.count_calls(self._zero)
        complaints = [c for c in self._stack.complaints() if not self._kills.explain(c)]
        if complaints:
            raise Refused("a function failed during the drill:\n" + "\n".join(complaints[:20]))
        return super().report(settled=settled)


def _loses_notices(entry: Entry) -> bool:
    """Whether what becomes of nodes now depends on the next resync."""
    return isinstance(entry, FaultEntry) and entry.fault == "notices-lost"


run: Rig = rig_of_runs(Emulation)
