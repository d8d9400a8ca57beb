"""What the console is shown in tests: states of clusters that a test makes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from plimsoll.domain.drain import plan_drain
from plimsoll.domain.frames import Frame, frame_of
from plimsoll.domain.observation import Observation
from plimsoll_console.reading import read
from plimsoll_console.sources import ClusterState, Kind, Rehearsal
from tests.support.builders import NOON


@dataclass
class GivenSource:
    """A source that shows what it was given."""

    states: dict[str, ClusterState] = field(default_factory=dict)
    seconds: float = 60.0
    ended: bool = False
    kind: Kind = "cluster"
    title: str = "harbor"
    speed: float = 1.0
    made: list[Rehearsal] = field(default_factory=list)

    def now(self) -> datetime:
        return NOON + timedelta(seconds=self.seconds)

    def clusters(self) -> Sequence[str]:
        return [*self.states]

    def rehearsals(self, cluster: str) -> Sequence[Rehearsal]:
        return [each for each in self.made if each.cluster == cluster]

    def rehearse(self, cluster: str, scope: str) -> Rehearsal | None:
        if any(each.stage in {"reading", "playing"} for each in self.made):
            return None
        begun = Rehearsal(number=len(self.made) + 1, cluster=cluster, scope=scope, at=self.now())
        self.made.insert(0, begun)
        return begun

    def state(self, cluster: str) -> ClusterState | None:
        return self.states.get(cluster)


def state_of(*seen: Observation, every: float = 10.0, name: str = "harbor", **how) -> ClusterState:
    """Return a cluster that looked so at noon and, one observation after the other, later."""
    state, frames = ClusterState(name=name, at=NOON), list[Frame]()
    for place, observation in enumerate(seen):
        now = NOON + timedelta(seconds=1 + every * place)
        state = read(state, observation, now)
        frame = frame_of(plan_drain(observation, now), frames[-1] if frames else None)
        frames += [frame] if frame else []
    return ClusterState(
        name=name,
        at=state.at,
        seen=state.seen,
        loads=state.loads,
        loads_at=state.loads_at,
        frames=frames,
        **how,
    )
