"""A storm without any cluster: a drill that is played in a thread, at a pace that people can follow."""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from typing import TYPE_CHECKING

from plimsoll.domain.errors import Temporary
from plimsoll_cli.console.rehearsals import Rehearsals
from plimsoll_console.sources import ClusterState, Kind, Rehearsal
from plimsoll_simulation.rigs.simulated.time import EPOCH

if TYPE_CHECKING:
    from plimsoll_simulation.rehearsal.live import LiveCluster
    from plimsoll_simulation.scenario.drill import Drill


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
        self._states: Mapping[str, ClusterState] = {
            cluster.name: ClusterState(name=cluster.name, at=EPOCH)
            for cluster in drill.scenario.clusters
        }
        self._live: Mapping[str, LiveCluster] = {}
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

    # What the player tells, in its thread.

    def set_up(self, live: Mapping[str, LiveCluster]) -> None:
        """Keep the clusters as they stand before the drill begins: rehearsals begin from them."""
        self._live = live

    def show(self, states: Mapping[str, ClusterState], now: datetime) -> None:
        """Take in how the clusters stand."""
        self._states = states
        self._now = now

    def _play(self) -> None:
        try:
            # Loaded by the thread that plays: the first page does not wait for the simulation.
            from plimsoll_cli.console.drill_player import DrillPlayer  # noqa: PLC0415 - see above

            DrillPlayer(self._drill, self._responder, self.speed, self, self._stop).play()
        except Exception as error:  # noqa: BLE001 - shown on every page: nobody waits for this thread
            self.failed = f"{type(error).__name__}: {error}"
            self._states = {
                name: replace(state, error=self.failed) for name, state in self._states.items()
            }
        finally:
            self.ended = True

    def _before(self, cluster: str) -> LiveCluster:
        found = self._live.get(cluster)
        if found is None:
            raise Temporary(f"{cluster} is not set up yet: try again in a second")
        return found
