"""A storm without any cluster: a drill that is played in a thread, at a pace that people can follow."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import datetime
from typing import Final

from plimsoll.adapters.kubernetes import KubernetesCluster
from plimsoll.adapters.workers import SerialWorkers
from plimsoll.domain.drain import plan_drain
from plimsoll.domain.errors import Temporary
from plimsoll.domain.frames import frame_of
from plimsoll.domain.node_groups import NodeGroup
from plimsoll.domain.observation import Observation
from plimsoll_batch.adapters.kubernetes.cluster import KubernetesQueues
from plimsoll_cli.console.queues import queues_of
from plimsoll_cli.console.rehearsals import Rehearsals
from plimsoll_console.sources import ClusterState, Kind, Rehearsal, read
from plimsoll_simulation.fake_aws.fleet import Fleet
from plimsoll_simulation.fake_aws.stores import MemoryFrames
from plimsoll_simulation.measure.listening import Progress
from plimsoll_simulation.measure.snapshot import Snapshot
from plimsoll_simulation.rehearsal.live import LiveCluster, read_cluster
from plimsoll_simulation.rigs.simulated.time import EPOCH
from plimsoll_simulation.scenario.drill import Drill

READ_EVERY: Final = 5.0
"""Seconds of the drill between two readings of a cluster."""
FRAME_AFTER: Final = 3.0
"""Seconds of the drill after which a frame is made where no reconcile made one: once a drain has nothing to do."""


class DrillSource:
    """Plays a drill once; what it showed stays.

    Args:
        drill: what is played.
        speed: seconds of the drill in a second.
        responder: who reacts.
    """

    kind: Kind = "drill"

    def __init__(self, drill: Drill, speed: float, responder: str = "plimsoll") -> None:
        self.title = drill.scenario.name
        self.speed = speed
        self.ended = False
        self.failed = ""
        """Why it ended early."""
        self._drill = drill
        self._responder = responder
        self._now = EPOCH
        self._states: dict[str, ClusterState] = {
            cluster.name: ClusterState(name=cluster.name, at=EPOCH)
            for cluster in drill.scenario.clusters
        }
        self._frames = MemoryFrames()
        self._began: tuple[float, float] | None = None
        self._live: dict[str, LiveCluster] = {}
        self._rehearsals = Rehearsals(self._before)
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._play, name="drill", daemon=True)

    def start(self) -> None:
        """Begin to play."""
        self._thread.start()

    def wait(self) -> None:
        """Return once it is played to its end."""
        self._thread.join()

    def close(self) -> None:
        """Stop playing."""
        self._stop.set()
        self._rehearsals.close()
        if self._thread.is_alive():
            self._thread.join()

    def now(self) -> datetime:
        """Return the time of the drill."""
        return self._now

    def clusters(self) -> Sequence[str]:
        """Return the names of its clusters."""
        return [*self._states]

    def rehearsals(self, cluster: str) -> Sequence[Rehearsal]:
        """Return the rehearsals of a cluster."""
        return self._rehearsals.list(cluster)

    def rehearse(self, cluster: str, scope: str) -> Rehearsal | None:
        """Begin a rehearsal of the cluster as it stood before the drill began."""
        return self._rehearsals.start(cluster, scope, self._now)

    def state(self, cluster: str) -> ClusterState | None:
        """Return what is known of a cluster."""
        return self._states.get(cluster)

    # The listener of the rig.

    def progress(self, progress: Progress) -> None:
        """Wait until it is time, and look: called by the thread that plays, after each second of the drill."""
        if self._began is None:
            self._began = progress.seconds, time.monotonic()
        first, began = self._began
        due = began + (progress.seconds - first) / self.speed
        if self._stop.wait(max(0.0, due - time.monotonic())):
            raise _StoppedError
        self._look()

    def say(self, seconds: float, what: str) -> None:
        """Ignore it: frames say what was done."""

    def show(self, snapshot: Callable[[], Snapshot]) -> None:
        """Ignore the offer."""

    def _play(self) -> None:
        # Loaded by the thread that plays: the first page does not wait for it.
        from plimsoll_simulation.rigs.simulated.rig import Simulation  # noqa: PLC0415 - see above

        frames = self._frames
        try:
            with Simulation(
                self._drill,
                responder=self._responder,
                seed=self._drill.scenario.seed,
                listener=self,
                frames=frames,
            ) as simulation:
                self._simulation = simulation
                simulation.prepare()
                self._look(force=True)
                for name, rig_cluster in simulation.rig_clusters.items():
                    self._live[name] = replace(
                        read_cluster(self._api(name).requests, simulation.clock),
                        groups=groups_of(rig_cluster.fleet),
                    )
                simulation.begin()
                simulation.watch()
                self._look(force=True)
        except _StoppedError:
            return
        except Exception as error:  # noqa: BLE001 - shown on every page: nobody waits for this thread
            self.failed = f"{type(error).__name__}: {error}"
            for name, state in self._states.items():
                self._states[name] = replace(state, error=self.failed)
        finally:
            self.ended = True

    def _look(self, *, force: bool = False) -> None:
        """Take in how the clusters stand; called by the thread that plays, between two moments."""
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

        self._now = now

    def _api(self, cluster: str) -> KubernetesCluster:
        from plimsoll_simulation.fake_cluster.transport import FakeTransport  # noqa: PLC0415 - as the rig

        clock = self._simulation.clock
        transport = FakeTransport(self._simulation.rig_clusters[cluster].cluster, clock)
        return KubernetesCluster(transport, cluster, clock, workers=SerialWorkers())

    def _before(self, cluster: str) -> LiveCluster:
        found = self._live.get(cluster)
        if found is None:
            raise Temporary(f"{cluster} is not set up yet: try again in a second")
        return found

    def _add_frame(self, seen: Observation, now: datetime) -> None:
        frame = frame_of(plan_drain(seen, now), self._frames.latest(seen.cluster), done=())
        if frame is not None:
            self._frames.take(frame)


def groups_of(fleet: Fleet) -> Sequence[NodeGroup]:
    """Return the node groups of a fleet as AWS would describe them."""
    from plimsoll_simulation.rigs.simulated.aws import group_of  # noqa: PLC0415 - as the rig

    return [group_of(group) for group in fleet.groups.values() if group.spec.kind != "static"]


class _StoppedError(Exception):
    """Nobody watches any more."""
