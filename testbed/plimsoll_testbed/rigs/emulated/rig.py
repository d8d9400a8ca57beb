"""The emulated rig: the built template deployed on an emulated AWS, in wall-clock time.

Events travel over the real bus to functions that run as Lambda functions; these reach the clusters
over HTTP with the official client, and the fleet over AWS's protocols. Only what they act on
is a model. On this rig it is the same model as the simulated rig's; `plimsoll_testbed.rigs.cluster` puts a
real control plane in the place of its clusters.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from datetime import datetime, timedelta
from functools import partial
from typing import Final

from plimsoll.adapters.clock import SystemClock
from plimsoll.domain.errors import Refused
from plimsoll_testbed.measure.history import Recorder
from plimsoll_testbed.measure.listening import Listener, Progress, Quiet
from plimsoll_testbed.measure.measure import Measurement
from plimsoll_testbed.measure.report import Report, build_report
from plimsoll_testbed.measure.settling import settled
from plimsoll_testbed.measure.snapshot import Snapshot, snapshot_of
from plimsoll_testbed.rigs.access import Access
from plimsoll_testbed.rigs.emulated.awsfleet import AwsFleet
from plimsoll_testbed.rigs.emulated.bus import Bus
from plimsoll_testbed.rigs.emulated.clusters import HollowClusters, MakesClusters
from plimsoll_testbed.rigs.emulated.commondrain import CommonDrain
from plimsoll_testbed.rigs.emulated.emulator import Emulator
from plimsoll_testbed.rigs.emulated.kills import Kills
from plimsoll_testbed.rigs.emulated.ministack import MiniStack
from plimsoll_testbed.rigs.emulated.stack import Stack
from plimsoll_testbed.rigs.emulated.walltime import WallTime
from plimsoll_testbed.rigs.registry import Rig
from plimsoll_testbed.rigs.resyncs import RESYNC, RESYNC_PHASE
from plimsoll_testbed.rigs.simulated.timeline import Timeline
from plimsoll_testbed.scenario.capabilities import refuse_unsupported
from plimsoll_testbed.scenario.drill import Drill
from plimsoll_testbed.scenario.scenario import Entry, FaultEntry

POLL_SECONDS: Final = 0.25
"""Seconds between two updates of the view, and checks for the end."""


def play(  # noqa: PLR0913 - what a drill is played with
    drill: Drill,
    *,
    clusters: MakesClusters,
    emulators: type[Emulator] = MiniStack,
    rig: str,
    responder: str,
    seed: int,
    listener: Listener | None = None,
    recorder: Recorder | None = None,
) -> Report:
    """Play a drill on an emulated AWS and return its report; nothing is left running.

    Args:
        drill: what is played.
        clusters: makes its clusters.
        emulators: the kind of emulated AWS.
        rig: its name in the report and in `capabilities`.
        responder: who reacts.
        seed: of all that is drawn.
        listener: who hears how it goes.
        recorder: who keeps what the report only adds up.

    Raises:
        BadInput: the rig cannot play it, or its cluster never becomes Ready.
        Refused: something that the rig starts is missing or did not start.
    """
    refuse_unsupported(drill.scenario, rig)
    with ExitStack() as exits:
        emulation = Emulation(
            drill,
            clusters=clusters,
            emulators=emulators,
            rig=rig,
            responder=responder,
            seed=seed,
            listener=listener or Quiet(),
            recorder=recorder,
            exits=exits,
        )
        return emulation.run()


run: Rig = partial(play, clusters=HollowClusters, rig="emulated")


class Emulation:
    """One drill, played once. What it starts is stopped by `exits`, in reverse order."""

    def __init__(  # noqa: PLR0913 - what a drill is played with
        self,
        drill: Drill,
        *,
        clusters: MakesClusters = HollowClusters,
        emulators: type[Emulator] = MiniStack,
        rig: str = "emulated",
        responder: str,
        seed: int,
        listener: Listener,
        recorder: Recorder | None = None,
        exits: ExitStack,
    ) -> None:
        self._drill = drill
        self._emulators = emulators
        self._rig = rig
        self._responder = responder
        self._seed = seed
        self._listener = listener
        self._exits = exits
        self._began = time.monotonic()
        self._zero: datetime | None = None
        self._drain: CommonDrain | None = None
        self._kills: Kills | None = None
        self._time = WallTime(SystemClock())
        self._clock = self._time.clock
        self._measurement = Measurement(recorder)
        self._clusters = clusters(
            drill,
            seed=seed,
            time=self._time,
            measurement=self._measurement,
            exits=exits,
            say=self._say,
        )

    def run(self) -> Report:
        """Set everything up, play the timeline to its end, and return the report."""
        with self._step("made the cluster ready"):
            self._clusters.make_ready()
        stack, bus = self._set_up()
        if self._responder == "plimsoll" and any(
            map(_loses_notices, self._drill.scenario.timeline)
        ):
            with self._step("waited until the next resync is as far off as on the simulated rig"):
                self._await_resync(stack)
        with self._time.lock:
            timeline = self._begin(bus)
        self._watch(timeline, bus, stack)
        return self._report(stack)

    def _set_up(self) -> tuple[Stack, Bus]:
        fleets = [rig_cluster.fleet for rig_cluster in self._clusters.rig_clusters.values()]
        aws = self._exits.enter_context(
            AwsFleet(fleets, clock=self._time.catch_up, lock=self._time.lock)
        )
        emulator = self._emulators(endpoints=aws.endpoints)
        with self._step(f"started {emulator.name}"):
            self._exits.enter_context(emulator)
        with self._step("deployed the built template with sam deploy"):
            emulator.deploy(AcceptDrills="true", Size="small")
        stack = Stack(emulator, aws)
        if self._responder == "drain":
            self._drain = self._exits.enter_context(
                CommonDrain(emulator, self._clusters.rig_clusters, self._ways(), SystemClock())
            )
        if self._responder == "plimsoll":
            for name, way in self._ways().items():
                stack.register(name, way)
            with self._step("registered the clusters and swept once"):
                stack.resync()
            with self._step("started the functions' workers"):
                emulator.warm("NoticesFunction", 3)
                emulator.warm("DrainsFunction", 2)
        self._kills = self._exits.enter_context(
            Kills(emulator, self._seed, SystemClock(), self._say)
        )
        bus = self._exits.enter_context(Bus(emulator.client("events"), self._clock, emulator.reach))
        return stack, bus

    def _await_resync(self, stack: Stack) -> None:
        """Return so long before a resync that it comes as late as on the simulated rig.

        Raises:
            Refused: the schedule brings none.
        """
        before = stack.asked
        end = time.monotonic() + (2 * RESYNC).total_seconds()
        while stack.asked == before:
            if time.monotonic() > end:
                raise Refused("the schedule of the deployed stack brings no sweep")
            time.sleep(POLL_SECONDS)
        time.sleep((RESYNC - RESYNC_PHASE).total_seconds())

    def _ways(self) -> Mapping[str, Access]:
        """Let the responder into the clusters, and return how it gets there."""
        return {
            name: self._clusters.open(name, self._responder) for name in self._clusters.rig_clusters
        }

    def _begin(self, bus: Bus) -> Timeline:
        zero = self._zero = self._time.catch_up()
        self._measurement.begin(zero)
        timeline = Timeline(
            drill=self._drill,
            seed=self._seed,
            clock=self._clock,
            rig_clusters=self._clusters.rig_clusters,
            queue=bus,
            measurement=self._measurement,
            say=self._say,
            fault_injector=self._kills,
        )
        timeline.play(zero)
        self._clusters.begin()
        return timeline

    def _watch(self, timeline: Timeline, bus: Bus, stack: Stack) -> None:
        """Look on until everything is settled or the horizon is reached."""
        horizon = self._drill.scenario.horizon
        calm = False
        while not calm and self._elapsed() < horizon:
            time.sleep(POLL_SECONDS)
            self._raise_errors(timeline, bus)
            for at, line in stack.news():
                self._say(line, at)
            with self._time.lock:
                calm = self._settled(timeline, bus)
                self._listener.show(self._snapshot)
            self._listener.progress(
                Progress(
                    seconds=self._elapsed().total_seconds(), of_seconds=horizon.total_seconds()
                )
            )
        if not calm:
            with self._time.lock:
                self._say(f"not settled: {'; '.join(self._restless(timeline, bus))}")
        self._calm = calm

    def _raise_errors(self, timeline: Timeline, bus: Bus) -> None:
        parts = (bus, self._time, self._drain, self._kills)
        errors = (part.error for part in parts if part is not None)
        for error in (*timeline.errors, *self._clusters.errors, *errors):
            if error is not None:
                raise error

    def _settled(self, timeline: Timeline, bus: Bus) -> bool:
        # Cheap first: while the timeline runs nothing else needs to be looked at.
        entries = self._drill.scenario.timeline
        return settled(entries, self._elapsed(), ()) and not self._restless(timeline, bus)

    def _restless(self, timeline: Timeline, bus: Bus) -> list[str]:
        """Return in words why the drill cannot end yet, but for its timeline."""
        words = self._measurement.restless()
        for rig_cluster in self._clusters.rig_clusters.values():
            words += rig_cluster.unfinished()
        if not timeline.over:
            words.append("the owner still waits for an API server")
        if bus.busy:
            words.append("notices are on their way")
        return words

    def _report(self, stack: Stack) -> Report:
        if self._responder == "plimsoll":
            stack.hand_in(list(self._clusters.rig_clusters), self._measurement)
        if self._zero is not None:
            self._clusters.count_calls(self._zero)
        kills = self._kills
        complaints = [c for c in stack.complaints() if kills is None or not kills.explain(c)]
        if complaints:
            raise Refused("a function failed during the drill:\n" + "\n".join(complaints[:20]))
        with self._time.lock:
            return build_report(
                self._drill.scenario,
                self._measurement,
                self._measurement.figures(
                    self._clock.now(),
                    settled=self._calm,
                    spot_price=self._drill.scenario.prices.spot,
                ),
                rig=self._rig,
                responder=self._responder,
                seed=self._seed,
            )

    def _elapsed(self) -> timedelta:
        return timedelta(0) if self._zero is None else self._clock.now() - self._zero

    def _snapshot(self) -> Snapshot:
        assert self._zero is not None  # noqa: S101 - nobody looks before time 0
        return snapshot_of(
            self._clusters.rig_clusters, self._measurement, self._clock.now(), self._zero
        )

    @contextmanager
    def _step(self, done: str) -> Iterator[None]:
        began = time.monotonic()
        yield
        self._say(f"{done} ({time.monotonic() - began:.1f} s)")

    def _say(self, what: str, at: datetime | None = None) -> None:
        seconds = (
            time.monotonic() - self._began
            if self._zero is None
            else ((at or self._clock.now()) - self._zero).total_seconds()
        )
        self._listener.say(seconds, what)


def _loses_notices(entry: Entry) -> bool:
    """Whether what becomes of nodes now depends on the next resync."""
    return isinstance(entry, FaultEntry) and entry.fault == "notices-lost"
