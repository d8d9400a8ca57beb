"""What an interruption stack tells of a tenant's clusters: the frames of their storms, and reports.

A registered cluster belongs to the tenant whose agent the registry names. Ids of agents are made of tenant and name, so
no name in a request leads to the cluster of another tenant.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Final

from plimsoll.domain.frames import Frame
from plimsoll.domain.reports import Report
from plimsoll.services.ports import AgentBindings, FrameArchive, Reports

SHOWN: Final = timedelta(days=7)
"""How old a storm may be: older ones have their reports."""
BINDINGS_KEPT: Final = timedelta(seconds=30)
"""A page that follows a storm asks every two seconds, and the registry is read whole."""


@dataclass(slots=True, kw_only=True)
class InterruptionStack:
    """Reads the tables of an interruption stack, by a role that reads nothing else."""

    registry: AgentBindings
    frames: FrameArchive
    reports: Reports
    _read: datetime | None = field(default=None, init=False)
    _agents: dict[str, str] = field(default_factory=dict, init=False)

    def registered(self, agent: str, now: datetime) -> str | None:
        """Return the name under which the cluster of an agent is registered; None: none is bound to it.

        Raises:
            PlimsollError: the registry cannot be read.
        """
        if self._read is None or now - self._read > BINDINGS_KEPT:
            self._agents, self._read = {**self.registry.agents()}, now
        return self._agents.get(agent)

    def agent_of(self, registered: str, agents: Collection[str], now: datetime) -> str | None:
        """Return which of some agents a registered name is bound to; None: none of them."""
        return next((each for each in agents if self.registered(each, now) == registered), None)

    def storm(self, registered: str, at: float | None, now: datetime) -> Sequence[Frame]:
        """Return the last frame of the last storm; before it the one that is replayed, if one is asked for.

        Args:
            registered: the name of the cluster in the registry.
            at: seconds after the first notice of the frame that is replayed.
            now: the time.

        Raises:
            PlimsollError: the frames cannot be read.
        """
        last = self.frames.latest(registered)
        if last is None or now - last.at > SHOWN:
            return ()
        if at is None:
            return (last,)
        then = self.frames.latest(registered, last.storm + timedelta(seconds=at))
        return (then, last) if then is not None and then.storm == last.storm else (last,)

    def newest_reports(self, registered: str, limit: int = 50) -> Sequence[Report]:
        """Return so many of the newest reports of a cluster, the newest first.

        Raises:
            PlimsollError: they cannot be read.
        """
        return self.reports.list(registered, limit)
