"""One drill, played once: what every rig does around the time that it lets pass."""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext
from datetime import datetime, timedelta
from types import TracebackType
from typing import Any, Final, Required, Self, TypedDict

from plimsoll_simulation.measure.expectations import JUDGED, awaited
from plimsoll_simulation.measure.history import History
from plimsoll_simulation.measure.listening import Listener, Progress, Quiet
from plimsoll_simulation.measure.measure import Measurement
from plimsoll_simulation.measure.report import Report, build_report
from plimsoll_simulation.measure.snapshot import Snapshot, snapshot_of
from plimsoll_simulation.rigs.registry import Rig
from plimsoll_simulation.rigs.rig_cluster import RigCluster
from plimsoll_simulation.rigs.simulated.other_controllers.other_controller import OtherController
from plimsoll_simulation.rigs.simulated.time import VirtualClock
from plimsoll_simulation.rigs.simulated.timeline import InjectsFaults, TakesEvents, Timeline
from plimsoll_simulation.scenario.capabilities import refuse_unsupported
from plimsoll_simulation.scenario.drill import Drill

RESYNC_PHASE: Final = timedelta(seconds=37)
"""From time 0 to the first resync after it: one at the second of a notice would do its work."""
PLACEMENT: Final = timedelta(minutes=5)
"""How often the scheduled placement runs; the resync wakes the drain for what cannot wait for it."""


class How(TypedDict, total=False):
    """How a drill is played, as `Run` says it."""

    responder: Required[str]
    seed: Required[int]
    listener: Listener | None
    history: History | None


class Run(ABC):
    """One drill, played once; a context manager that stops what it started, in reverse order.

    Args:
        drill: what is played.
        clock: its time.
        rig: its name in the report and in `capabilities`.
        responder: who reacts.
        seed: of all that is drawn.
        listener: who hears how it goes.
        history: keeps what the report only adds up.

    Raises:
        BadInput: the rig cannot play it.
    """

    rig_clusters: Mapping[str, RigCluster]
    timeline: Timeline

    def __init__(  # noqa: PLR0913 - what a drill is played with
        self,
        drill: Drill,
        *,
        clock: VirtualClock,
        rig: str,
        responder: str,
        seed: int,
        listener: Listener | None = None,
        history: History | None = None,
    ) -> None:
        refuse_unsupported(drill.scenario, rig)
        self.drill = drill
        self.clock = clock
        self.rig = rig
        self.responder_name = responder
        self.seed = seed
        self.measurement = Measurement(history)
        self.other_controllers: list[OtherController[Any]] = []
        """Other programs that act in the clusters."""
        self._listener = listener or Quiet()
        self._exits = ExitStack()
        self._began = clock.now()
        self._zero: datetime | None = None
        self._still: AbstractContextManager[Any] = nullcontext()
        """Held while the clusters are to be kept from changing."""

    def run(self) -> Report:
        """Play the drill to its end and return the report.

        Raises:
            BadInput: a manifest is refused, or a cluster never becomes Ready.
            Refused: something that the rig starts is missing or does not start.
        """
        self.prepare()
        self.begin()
        return self.report(settled=self.watch())

    @abstractmethod
    def prepare(self) -> None:
        """Let every cluster become Ready, and the responder be in its place."""

    def begin(self) -> None:
        """Let it be time 0."""
        with self._still:
            self._zero = self.clock.now()
            self.measurement.begin(self._zero)
            self.timeline.play(self._zero)
            self._begin(self._zero)

    def watch(self) -> bool:
        """Look on until everything is settled or the horizon is reached; return which it was."""
        scenario = self.drill.scenario
        of_seconds, calm = scenario.horizon.total_seconds(), False
        while not calm and self._elapsed() < scenario.horizon:
            self._pass_time()
            for error in self.timeline.errors:
                raise error
            with self._still:
                calm = self._settled()
                seconds = self._elapsed().total_seconds()
                self._listener.progress(Progress(seconds=seconds, of_seconds=of_seconds))
                self._listener.show(self._snapshot)
        if not calm:
            with self._still:
                self.say(f"not settled: {'; '.join(self.restless())}")
        return calm

    def report(self, *, settled: bool) -> Report:
        """Return what came of it."""
        scenario = self.drill.scenario
        with self._still:
            return build_report(
                scenario,
                self.measurement,
                self.measurement.figures(
                    self.clock.now(), settled=settled, spot_price=scenario.prices.spot
                ),
                rig=self.rig,
                responder=self.responder_name,
                seed=self.seed,
            )

    def restless(self) -> list[str]:
        """Return in words why the drill cannot end yet, but for its timeline."""
        words = self.measurement.restless()
        if self.responder_name == JUDGED:
            metrics = self.measurement.workload_metrics.values()
            words += awaited(self.drill.scenario.expect, metrics)
        for rig_cluster in self.rig_clusters.values():
            words += rig_cluster.unfinished()
        words += [
            f"{other_controller.name} drains"
            for other_controller in self.other_controllers
            if other_controller.under_way
        ]
        if not self.timeline.over:
            words.append("the owner still waits for an API server")
        return words

    def say(self, what: str, at: datetime | None = None) -> None:
        """Tell the listener that something happened, now or at another time."""
        since = self._zero or self._began
        self._listener.say(((at or self.clock.now()) - since).total_seconds(), what)

    def close(self) -> None:
        """Stop what was started. Twice is once."""
        self._exits.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._exits.__exit__(kind, error, trace)

    # What differs between rigs.

    @abstractmethod
    def _begin(self, zero: datetime) -> None:
        """Let begin at time 0 what does not stand in the timeline."""

    @abstractmethod
    def _pass_time(self) -> None:
        """Return after a moment of the drill; raise what went wrong in the rig itself."""

    def _settled(self) -> bool:
        # Cheap first: while the timeline runs nothing else needs to be looked at.
        timeline, elapsed = self.drill.scenario.timeline, self._elapsed()
        return all(entry.over(elapsed) for entry in timeline) and not self.restless()

    def _timeline(
        self, queue: TakesEvents, faults: InjectsFaults, *, doubled: bool = False
    ) -> Timeline:
        return Timeline(
            drill=self.drill,
            seed=self.seed,
            clock=self.clock,
            rig_clusters=self.rig_clusters,
            queue=queue,
            measurement=self.measurement,
            say=self.say,
            fault_injector=faults,
            doubled=doubled,
        )

    def _elapsed(self) -> timedelta:
        return timedelta(0) if self._zero is None else self.clock.now() - self._zero

    def _snapshot(self) -> Snapshot:
        assert self._zero is not None  # noqa: S101 - nobody looks before time 0
        return snapshot_of(self.rig_clusters, self.measurement, self.clock.now(), self._zero)


def rig_of_runs(make: Callable[..., Run]) -> Rig:
    """Return a rig that plays each drill as a run; nothing is left running."""

    def play(drill: Drill, **how: Any) -> Report:
        with make(drill, **how) as run:
            return run.run()

    return play


@contextmanager
def told(say: Callable[[str], None], done: str) -> Iterator[None]:
    """Say how long a step took, when it is done."""
    began = time.monotonic()
    yield
    say(f"{done} ({time.monotonic() - began:.1f} s)")
