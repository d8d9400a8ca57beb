"""A live cluster by its kubeconfig: watched, planned for, and never written to."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Final

from plimsoll.adapters.kubernetes import KubernetesCluster
from plimsoll.adapters.workers import ThreadWorkers
from plimsoll.domain.drain import plan_drain
from plimsoll.domain.errors import PlimsollError
from plimsoll.domain.frames import Frame, frame_of
from plimsoll.domain.kubernetes import namespace_floors
from plimsoll.domain.node_groups import NodeGroup
from plimsoll.domain.observation import InterruptedNodes, Observation
from plimsoll.services.ports import Clock
from plimsoll_batch.adapters.kubernetes.cluster import KubernetesQueues
from plimsoll_cli.console.queues import queues_of
from plimsoll_cli.console.rehearsals import Rehearsals
from plimsoll_console.reading import read
from plimsoll_console.sources import ClusterState, Kind, Rehearsal
from plimsoll_simulation.rehearsal.live import LiveCluster, read_cluster

QUEUES_EVERY: Final = timedelta(seconds=10)
"""Between two readings of the batch queues, also in a storm."""
IN_STORM: Final = 2.0
IN_CALM: Final = 10.0
"""Seconds between two readings."""
AFTER_FAILURE: Final = 5.0
MOST_FRAMES: Final = 2000
"""Of all storms: an hour of one, with a frame each two seconds."""


class ClusterSource:
    """Follows one cluster in a thread.

    Args:
        name: of the context.
        api: of the cluster.
        clock: the time.
        groups: the node groups that the owner names for rehearsals: a kubeconfig tells of none, so of a storm it is
            not known which nodes come.
    """

    kind: Kind = "cluster"
    speed = 1.0
    ended = False

    def __init__(
        self,
        name: str,
        api: KubernetesCluster,
        clock: Clock,
        groups: Callable[[Observation], Sequence[NodeGroup]],
    ) -> None:
        self.title = name
        self._api = api
        self._clock = clock
        self._groups = groups
        self._state = ClusterState(name=name, at=clock.now())
        self._frames: list[Frame] = []
        self._queues_at: datetime | None = None
        self._workers = ThreadWorkers()
        self._queues = KubernetesQueues(api.requests, clock, workers=self._workers)
        self._namespaces: Mapping[str, str] = {}
        self._rehearsals = Rehearsals(self._live)
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._follow, name="cluster", daemon=True)

    def start(self) -> None:
        """Begin to follow."""
        self._thread.start()

    def close(self) -> None:
        """Follow no more."""
        self._stop.set()
        self._rehearsals.close()
        if self._thread.is_alive():
            self._thread.join(AFTER_FAILURE)
        self._workers.close()

    def now(self) -> datetime:
        """Return the time."""
        return self._clock.now()

    def clusters(self) -> Sequence[str]:
        """Return the one name."""
        return [self._state.name]

    def state(self, cluster: str) -> ClusterState | None:
        """Return what is known of it."""
        return self._state if cluster == self._state.name else None

    def rehearsals(self, cluster: str) -> Sequence[Rehearsal]:
        """Return its rehearsals."""
        return self._rehearsals.list(cluster)

    def rehearse(self, cluster: str, scope: str) -> Rehearsal | None:
        """Begin a rehearsal of the cluster as it stands now."""
        return self._rehearsals.start(cluster, scope, self.now())

    def look(self, api: KubernetesCluster, queues: KubernetesQueues | None = None) -> None:
        """Read the cluster once, and from time to time its queues, and take in how it stands.

        Args:
            api: the cluster, maybe one that is followed.
            queues: the same of its queues.

        Raises:
            PlimsollError: it cannot be read.
        """
        seen = api.observe()
        namespaces = self._namespaces if self._state.loads else namespace_floors(api.namespaces())
        self._namespaces, now = namespaces, self._clock.now()
        last = self._frames[-1] if self._frames else None
        frame = None
        if InterruptedNodes.of(seen).nodes or (last is not None and not last.over):
            # What was done is not seen from here: only what follows from it.
            frame = frame_of(plan_drain(seen, now), last, done=())
        if frame is not None:
            self._frames = [*self._frames, frame][-MOST_FRAMES:]
        state = read(self._state, seen, now, namespaces)
        if self._queues_at is None or now - self._queues_at >= QUEUES_EVERY:
            state = replace(state, queues=queues_of(queues or self._queues, now))
            self._queues_at = now
        self._state = replace(state, frames=tuple(self._frames))

    def _follow(self) -> None:
        while not self._stop.is_set():
            try:
                with self._api.following() as api, self._queues.following() as queues:
                    while not self._stop.is_set():
                        self.look(api, queues)
                        latest = self._state.latest
                        calm = latest is None or latest.over
                        self._stop.wait(IN_CALM if calm else IN_STORM)
            except PlimsollError as error:
                self._state = replace(self._state, error=str(error))
            except Exception as error:  # noqa: BLE001 - shown on every page: nobody waits for this thread
                self._state = replace(self._state, error=f"{type(error).__name__}: {error}")
            self._stop.wait(AFTER_FAILURE)

    def _live(self, _: str) -> LiveCluster:
        found = read_cluster(self._api.requests, self._clock)
        groups = self._groups(found.seen)
        return replace(found, groups=groups) if groups else found
