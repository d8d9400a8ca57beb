"""The process in which a rehearsal is played: it gets a cluster as it was read, and sends what it predicts."""

from __future__ import annotations

import tempfile
from dataclasses import replace
from multiprocessing.connection import Connection
from pathlib import Path
from typing import override

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


def rehearse(to: Connection, live: LiveCluster, begun: Rehearsal) -> None:
    """Play a rehearsal.

    Args:
        to: takes the share that is played, each hundredth once, and last the rehearsal or why it failed.
        live: the cluster as it was read.
        begun: the rehearsal without an outcome.
    """
    scope, sink = scope_of(begun.scope), MemoryFrames()
    try:
        drill = modelled(live, scope)
        with tempfile.TemporaryDirectory(prefix="plimsoll-rehearsal-") as folder:
            script = read_drill(drill.write(Path(folder)))
        with Simulation(
            script, responder="plimsoll", seed=0, listener=_Progress(to), frames=sink
        ) as simulation:
            report = simulation.run()
        found = played(begun, prediction_of(live, scope, drill, report))
    except PlimsollError as error:
        to.send(str(error))
    except Exception as error:  # noqa: BLE001 - told to whoever asked
        to.send(f"a bug of Plimsoll: {type(error).__name__}: {error}")
    else:
        frames = (frame for frames in sink.of.values() for frame in frames)
        to.send(replace(found, safe=tuple((each.seconds, each.counts.safe) for each in frames)))


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
