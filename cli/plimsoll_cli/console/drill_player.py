"""Plays a drill at a pace, and tells after each second of it how the clusters stand."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from typing import Final, Protocol

from plimsoll.adapters.kubernetes import KubernetesCluster
from plimsoll.adapters.workers import SerialWorkers
from plimsoll.domain.drain import plan_drain
from plimsoll.domain.frames import frame_of
from plimsoll.domain.node_groups import NodeGroup
from plimsoll.domain.observation import Observation
from plimsoll_batch.adapters.kubernetes.cluster import KubernetesQueues
from plimsoll_cli.console.queues import queues_of
from plimsoll_console.reading import read
from plimsoll_console.sources import ClusterState
from plimsoll_simulation.fake_aws.fleet import Fleet
from plimsoll_simulation.fake_aws.stores import MemoryFrames
from plimsoll_simulation.fake_cluster.transport import FakeTransport
from plimsoll_simulation.measure.listening import Progress
from plimsoll_simulation.measure.snapshot import Snapshot
from plimsoll_simulation.rehearsal.live import LiveCluster, read_cluster
from plimsoll_simulation.rigs.simulated.aws import group_of
from plimsoll_simulation.rigs.simulated.rig import Simulation
from plimsoll_simulation.rigs.simulated.time import EPOCH
from plimsoll_simulation.scenario.drill import Drill

READ_EVERY: Final = 5.0
"""Seconds of the drill between two readings of a cluster."""
FRAME_AFTER: Final = 3.0
"""Seconds of the drill after which a frame is made where no reconcile made one: once a drain has nothing to do."""


class Audience(Protocol):
    """Who is told of the drill, in the thread that plays."""

    def set_up(self, live: Mapping[str, LiveCluster]) -> None:
        """Take in the clusters as they stand before the drill begins."""

    def show(self, states: Mapping[str, ClusterState], now: datetime) -> None:
        """Take in how the clusters stand."""


class DrillPlayer:
    """Plays a drill once.

    Args:
        drill: what is played.
        responder: who reacts.
        speed: seconds of the drill in a second.
        audience: is told how the clusters stand.
        stop: once it is set, the drill ends early.
    """

    def __init__(
        self, drill: Drill, responder: str, speed: float, audience: Audience, stop: threading.Event
    ) -> None:
        self._speed = speed
        self._audience = audience
        self._stop = stop
        self._states = {
            cluster.name: ClusterState(name=cluster.name, at=EPOCH)
            for cluster in drill.scenario.clusters
        }
        self._frames = MemoryFrames()
        self._began: tuple[float, float] | None = None
        self._simulation = Simulation(
            drill,
            responder=responder,
            seed=drill.scenario.seed,
            listener=self,
            frames=self._frames,
        )

    def play(self) -> None:
        """Return once it is played, or stopped."""
        try:
            with self._simulation as simulation:
                simulation.prepare()
                self._look(force=True)
                self._audience.set_up(
                    {
                        name: replace(
                            read_cluster(self._api(name).requests, simulation.clock),
                            groups=groups_of(rig_cluster.fleet),
                        )
                        for name, rig_cluster in simulation.rig_clusters.items()
                    }
                )
                simulation.begin()
                simulation.watch()
                self._look(force=True)
        except _StoppedError:
            return

    # The listener of the rig.

    def progress(self, progress: Progress) -> None:
        """Wait until it is time, and look: called after each second of the drill."""
        if self._began is None:
            self._began = progress.seconds, time.monotonic()
        first, began = self._began
        due = began + (progress.seconds - first) / self._speed
        if self._stop.wait(max(0.0, due - time.monotonic())):
            raise _StoppedError
        self._look()

    def say(self, seconds: float, what: str) -> None:
        """Ignore it: frames say what was done."""

    def show(self, snapshot: Callable[[], Snapshot]) -> None:
        """Ignore the offer."""

    def _look(self, *, force: bool = False) -> None:
        """Take in how the clusters stand, between two moments, and tell it."""
        now, frames = self._simulation.clock.now(), self._frames
        for name, rig_cluster in self._simulation.rig_clusters.items():
            state = self._states[name]
            seen, last = state.seen, frames.latest(name)
            due = last is not None and (now - last.at).total_seconds() >= FRAME_AFTER
            due = due and not (last is not None and last.over)
            if force or due or (now - state.at).total_seconds() >= READ_EVERY:
                seen = self._api(name).observe().among(groups=groups_of(rig_cluster.fleet))
                if due or (force and last is not None):
                    self._add_frame(seen, now)
                found = KubernetesQueues(
                    self._api(name).requests, self._simulation.clock, workers=SerialWorkers()
                )
                state = replace(read(state, seen, now), queues=queues_of(found, now))
            self._states[name] = replace(
                state,
                frames=tuple(frames.of[name]),
                reports=tuple(self._simulation.responder.reports(name)),
            )
        self._audience.show(dict(self._states), now)

    def _api(self, cluster: str) -> KubernetesCluster:
        clock = self._simulation.clock
        transport = FakeTransport(self._simulation.rig_clusters[cluster].cluster, clock)
        return KubernetesCluster(transport, cluster, clock, workers=SerialWorkers())

    def _add_frame(self, seen: Observation, now: datetime) -> None:
        frame = frame_of(plan_drain(seen, now), self._frames.latest(seen.cluster), done=())
        if frame is not None:
            self._frames.take(frame)


def groups_of(fleet: Fleet) -> Sequence[NodeGroup]:
    """Return the node groups of a fleet as AWS would describe them."""
    return [group_of(group) for group in fleet.groups.values() if group.spec.kind != "static"]


class _StoppedError(Exception):
    """Nobody watches any more."""
