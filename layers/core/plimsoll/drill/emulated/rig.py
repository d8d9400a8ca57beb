"""The emulated rig: the built template deployed on an emulated AWS, in wall-clock time.

Events travel over the real bus to functions that run as Lambda functions; these reach the hollow
clusters over HTTP with the official client, and the fleet over AWS's protocols. Only the world
they act on is a model, and it is the same model as the simulated rig's.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from datetime import datetime, timedelta
from typing import Final

from plimsoll.adapters.clock import SystemClock
from plimsoll.domain.errors import Refused
from plimsoll.drill.emulated.awsfleet import AwsFleet
from plimsoll.drill.emulated.bus import Bus
from plimsoll.drill.emulated.commondrain import CommonDrain
from plimsoll.drill.emulated.ministack import MiniStack
from plimsoll.drill.emulated.stack import Stack
from plimsoll.drill.emulated.walltime import WallTime
from plimsoll.drill.history import Recorder
from plimsoll.drill.measure import Measurement
from plimsoll.drill.picture import Picture, picture_of
from plimsoll.drill.repertoire import refuse_unsupported
from plimsoll.drill.report import Report, build_report
from plimsoll.drill.rigs import Listener, Progress, Quiet
from plimsoll.drill.script import Script
from plimsoll.drill.settling import settled
from plimsoll.drill.simulated.autoscaler import ClusterAutoscaler
from plimsoll.drill.simulated.stage import Stage
from plimsoll.drill.simulated.timeline import Timeline
from plimsoll.drill.warmup import warm_up
from plimsoll.hollow.serve import HollowServer

LOOK: Final = 0.25
"""Seconds between two looks at the world, for the view and the end."""


def run(
    drill: Script,
    *,
    responder: str,
    seed: int,
    listener: Listener | None = None,
    recorder: Recorder | None = None,
) -> Report:
    """Play a drill and return its report; nothing is left running.

    Raises:
        BadInput: the rig cannot play it, or its cluster never becomes Ready.
        Refused: something that the rig starts is missing or did not start.
    """
    refuse_unsupported(drill.scenario, "emulated")
    with ExitStack() as exits:
        emulation = Emulation(
            drill,
            responder=responder,
            seed=seed,
            listener=listener or Quiet(),
            recorder=recorder,
            exits=exits,
        )
        return emulation.run()


class Emulation:
    """One drill, played once. What it starts is stopped by `exits`, in reverse order."""

    def __init__(  # noqa: PLR0913 - what a drill is played with
        self,
        drill: Script,
        *,
        responder: str,
        seed: int,
        listener: Listener,
        recorder: Recorder | None = None,
        exits: ExitStack,
    ) -> None:
        self._drill = drill
        self._responder = responder
        self._seed = seed
        self._listener = listener
        self._exits = exits
        self._began = time.monotonic()
        self._zero: datetime | None = None
        self._drain: CommonDrain | None = None
        self._time = WallTime(SystemClock())
        self._clock = self._time.clock
        self._measurement = Measurement(recorder)
        self._stages = {
            spec.name: Stage(spec, seed=seed, clock=self._clock, measurement=self._measurement)
            for spec in drill.scenario.clusters
        }

    def run(self) -> Report:
        """Set everything up, play the timeline to its end, and return the report."""
        with self._step("made the cluster ready"):
            self._make_ready()
        self._exits.enter_context(self._time)
        stack, bus = self._set_up()
        with self._time.lock:
            timeline = self._begin(bus)
        self._watch(timeline, bus, stack)
        return self._report(stack)

    def _make_ready(self) -> None:
        """Let the cluster become Ready before anybody looks, faster than the clock."""
        for name, stage in self._stages.items():
            stage.set_up(self._drill.objects[name])
        warm_up(self._clock, self._measurement)

    def _set_up(self) -> tuple[Stack, Bus]:
        fleets = [stage.fleet for stage in self._stages.values()]
        aws = self._exits.enter_context(
            AwsFleet(fleets, clock=self._time.catch_up, lock=self._time.lock)
        )
        with self._step("started MiniStack"):
            ministack = self._exits.enter_context(MiniStack(endpoints=aws.endpoints))
        with self._step("deployed the built template with sam deploy"):
            ministack.deploy(AcceptDrills="true", Size="small")
        stack = Stack(ministack, aws)
        servers = {
            name: self._exits.enter_context(self._serve(stage))
            for name, stage in self._stages.items()
        }
        if self._responder == "drain":
            self._drain = self._exits.enter_context(
                CommonDrain(ministack, self._stages, servers, SystemClock())
            )
        if self._responder == "plimsoll":
            for name, server in servers.items():
                stack.register(name, server)
            with self._step("registered the clusters and swept once"):
                stack.sweep()
            with self._step("started the functions' workers"):
                ministack.warm("NoticesFunction", 3)
                ministack.warm("DrainsFunction", 2)
        bus = self._exits.enter_context(Bus(ministack.client("events"), self._clock))
        return stack, bus

    def _serve(self, stage: Stage) -> HollowServer:
        return HollowServer(
            stage.cluster,
            lock=self._time.lock,
            now=self._time.catch_up,
            changed=lambda: self._clock.touch(stage.cluster),
            called=self._measurement.kubernetes_call,
        )

    def _begin(self, bus: Bus) -> Timeline:
        zero = self._zero = self._time.catch_up()
        self._measurement.begin(zero)
        timeline = Timeline(
            drill=self._drill,
            seed=self._seed,
            clock=self._clock,
            stages=self._stages,
            queue=bus,
            measurement=self._measurement,
            say=self._say,
        )
        timeline.play(zero)
        for stage in self._stages.values():
            if stage.spec.autoscaler is not None:
                scaler = ClusterAutoscaler(stage, self._clock, 0.0)
                self._every(stage.spec.autoscaler.scan, "autoscaler", scaler.scan)
        return timeline

    def _every(self, period: timedelta, name: str, act: Callable[[], object]) -> None:
        def again() -> None:
            self._clock.spawn(self._clock.now(), act, name)
            self._clock.at(self._clock.now() + period, again)

        self._clock.at(self._clock.now(), again)

    def _watch(self, timeline: Timeline, bus: Bus, stack: Stack) -> None:
        """Look on until everything is settled or the horizon is reached."""
        horizon = self._drill.scenario.horizon
        calm = False
        while not calm and self._elapsed() < horizon:
            time.sleep(LOOK)
            self._raise_errors(timeline, bus)
            for line in stack.news():
                self._say(line)
            with self._time.lock:
                calm = self._settled(timeline, bus)
                self._listener.show(self._picture)
            self._listener.progress(
                Progress(
                    seconds=self._elapsed().total_seconds(), of_seconds=horizon.total_seconds()
                )
            )
        self._calm = calm

    def _raise_errors(self, timeline: Timeline, bus: Bus) -> None:
        drain = None if self._drain is None else self._drain.error
        for error in (*timeline.errors, bus.error, self._time.error, drain):
            if error is not None:
                raise error

    def _settled(self, timeline: Timeline, bus: Bus) -> bool:
        if not settled(self._drill.scenario.timeline, self._elapsed(), ()):
            return False
        words = list(self._measurement.restless())
        for stage in self._stages.values():
            words += stage.unfinished()
        return not words and timeline.over and not bus.busy

    def _report(self, stack: Stack) -> Report:
        if self._responder == "plimsoll":
            stack.hand_in(list(self._stages), self._measurement)
        complaints = stack.complaints()
        if complaints:
            raise Refused("a function failed during the drill:\n" + "\n".join(complaints[:20]))
        with self._time.lock:
            return build_report(
                self._drill.scenario,
                self._measurement,
                self._measurement.figures(
                    self._clock.now(),
                    settled=self._calm,
                    spot_price=self._drill.scenario.spot_price,
                ),
                rig="emulated",
                responder=self._responder,
                seed=self._seed,
            )

    def _elapsed(self) -> timedelta:
        return timedelta(0) if self._zero is None else self._clock.now() - self._zero

    def _picture(self) -> Picture:
        assert self._zero is not None  # noqa: S101 - nobody looks before time 0
        return picture_of(self._stages, self._measurement, self._clock.now(), self._zero)

    @contextmanager
    def _step(self, done: str) -> Iterator[None]:
        began = time.monotonic()
        yield
        self._say(f"{done} ({time.monotonic() - began:.1f} s)")

    def _say(self, what: str) -> None:
        seconds = (
            time.monotonic() - self._began
            if self._zero is None
            else self._elapsed().total_seconds()
        )
        self._listener.say(seconds, what)
