"""Rehearsals that the page asks for: one at a time, each in a process of its own, and none is recorded.

A rehearsal computes for seconds to minutes. In this process it would keep the storm from being shown.
"""

from __future__ import annotations

import tempfile
import threading
from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import datetime
from multiprocessing import get_context
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Final, override

from plimsoll.domain.errors import PlimsollError
from plimsoll_cli.lab.rehearsal_rows import played
from plimsoll_console.sources import Rehearsal
from plimsoll_simulation.fake_aws.stores import MemoryFrames
from plimsoll_simulation.measure.listening import Progress, Quiet
from plimsoll_simulation.rehearsal.live import LiveCluster
from plimsoll_simulation.rehearsal.prediction import prediction_of
from plimsoll_simulation.rehearsal.scenario import modelled
from plimsoll_simulation.rehearsal.scope import Scope
from plimsoll_simulation.rigs.simulated.rig import Simulation
from plimsoll_simulation.scenario.drill import read_drill

MOST_KEPT: Final = 20
_ENDS_WITHIN: Final = 5.0
"""Seconds that a process has to end."""


class Rehearsals:
    """The rehearsals of a source.

    Args:
        read: reads a cluster; it may take seconds.
    """

    def __init__(self, read: Callable[[str], LiveCluster]) -> None:
        self._read = read
        self._done: list[Rehearsal] = []
        self._running: Rehearsal | None = None
        self._began = 0
        self._lock = threading.Lock()
        self._stop = threading.Event()
        self._thread: threading.Thread | None = None

    def list(self, cluster: str) -> Sequence[Rehearsal]:
        """Return those of a cluster, the newest first."""
        running = self._running
        every = [*([running] if running else []), *reversed(self._done)]
        return [each for each in every if each.cluster == cluster]

    def start(self, cluster: str, scope: str, at: datetime) -> Rehearsal | None:
        """Begin one, and return it; None: another one runs."""
        with self._lock:
            if self._running is not None:
                return None
            self._began += 1
            begun = Rehearsal(number=self._began, cluster=cluster, scope=scope, at=at)
            self._running = begun
        self._thread = threading.Thread(target=self._run, args=(begun,), name="rehearsal")
        self._thread.start()
        return begun

    def close(self) -> None:
        """End the one that runs."""
        self._stop.set()
        if self._thread is not None:
            self._thread.join()

    def _run(self, begun: Rehearsal) -> None:
        try:
            found = self._played(begun)
        except PlimsollError as error:
            found = replace(begun, stage="failed", error=str(error))
        except Exception as error:  # noqa: BLE001 - shown on the page: nobody waits for this thread
            found = replace(begun, stage="failed", error=f"{type(error).__name__}: {error}")
        self._done = [*self._done, found][-MOST_KEPT:]
        self._running = None

    def _played(self, begun: Rehearsal) -> Rehearsal:
        live = self._read(begun.cluster)
        begun = replace(begun, at=live.at)
        context = get_context("spawn")
        ours, theirs = context.Pipe(duplex=False)
        process = context.Process(
            target=_rehearse, args=(theirs, live, begun.scope), name="rehearsal", daemon=True
        )
        process.start()
        theirs.close()
        try:
            while not self._stop.is_set():
                if not ours.poll(0.2):
                    continue
                said = ours.recv()
                if isinstance(said, float):
                    self._running = begun = replace(begun, stage="playing", progress=said)
                elif isinstance(said, str):
                    return replace(begun, stage="failed", error=said)
                else:
                    found, frames = said
                    safe = tuple((frame.seconds, frame.counts.safe) for frame in frames)
                    return replace(played(begun, found), safe=safe)
            return replace(begun, stage="failed", error="the console was closed")
        except EOFError:
            return replace(begun, stage="failed", error="its process ended")
        finally:
            process.terminate()
            process.join(_ENDS_WITHIN)
            ours.close()


def scope_of(text: str) -> Scope:
    """Return what a form names: `spot`, `zone:NAME` or `family:NAME`."""
    kind, _, name = text.partition(":")
    return Scope(zone=name if kind == "zone" else None, family=name if kind == "family" else None)


class _Progress(Quiet):
    """Tells the other process how far a drill is."""

    def __init__(self, to: Connection) -> None:
        self._to = to
        self._said = 0.0

    @override
    def progress(self, progress: Progress) -> None:
        """Tell it, each hundredth once."""
        share = progress.seconds / progress.of_seconds
        if share - self._said >= 0.01:  # noqa: PLR2004 - a hundredth
            self._said = share
            self._to.send(share)


def _rehearse(to: Connection, live: LiveCluster, text: str) -> None:
    """Play a rehearsal, and send what it predicts: the work of the other process."""
    scope, sink = scope_of(text), MemoryFrames()
    try:
        drill = modelled(live, scope)
        with tempfile.TemporaryDirectory(prefix="plimsoll-rehearsal-") as folder:
            script = read_drill(drill.write(Path(folder)))
        with Simulation(
            script, responder="plimsoll", seed=0, listener=_Progress(to), frames=sink
        ) as simulation:
            report = simulation.run()
        found = prediction_of(live, scope, drill, report)
    except PlimsollError as error:
        to.send(str(error))
    except Exception as error:  # noqa: BLE001 - told to whoever asked
        to.send(f"a bug of Plimsoll: {type(error).__name__}: {error}")
    else:
        to.send((found, [frame for frames in sink.of.values() for frame in frames]))
