"""A screen as one file that needs neither server, network nor script: for a ticket, a mail, an archive."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from plimsoll_console.pages import Request, View
from plimsoll_console.rendering import Place, rendered
from plimsoll_console.sources import ClusterState, Kind, Rehearsal


def exported(
    view: View, state: ClusterState, rehearsals: Sequence[Rehearsal] = (), **named: str
) -> str:
    """Return a screen as HTML that stands alone.

    Args:
        view: of the screen.
        state: the cluster as it was read.
        rehearsals: of it.
        named: what else the path of the screen names.
    """
    source = _Read(_state=state, _rehearsals=rehearsals)
    page = view(Request(named={"cluster": state.name, **named}, whole=True), source)
    return rendered(page, Place(path="/", alone=True), source)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Read:
    """One cluster as it was read once."""

    _state: ClusterState
    _rehearsals: Sequence[Rehearsal]
    kind: Kind = "cluster"
    speed: float = 1.0
    ended: bool = True

    @property
    def title(self) -> str:
        return self._state.name

    def now(self) -> datetime:
        return self._state.at

    def clusters(self) -> Sequence[str]:
        return [self._state.name]

    def rehearsals(self, cluster: str) -> Sequence[Rehearsal]:
        return [each for each in self._rehearsals if each.cluster == cluster]

    def rehearse(self, cluster: str, scope: str) -> Rehearsal | None:  # noqa: ARG002 - of the port
        return None

    def state(self, cluster: str) -> ClusterState | None:
        return self._state if cluster == self._state.name else None
