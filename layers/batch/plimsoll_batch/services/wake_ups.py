"""Wakes the queues of a cluster when something happens there: they need not wait for the schedule.

A wake-up is a hint. The planner looks at its own cluster, and ends where there is nothing to do. So nothing
is proven here, everything may come twice, and what is lost is made up for by the schedule within a minute.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Final

from plimsoll.domain.errors import BadInput, PlimsollError
from plimsoll.domain.notices import About, Effect, parse
from plimsoll.domain.registry import agent_of
from plimsoll.services.ports import Clock, NodeIndex, Registry, Telemetry, WakeUps

AFTER_NOTICE_SECONDS: Final = (1, 4, 10, 20, 40)
"""Seconds from a notice to its wake-ups. The planner goes by what the interruption path writes on the Node, and
the first wake-up may come before that."""
AFTER_CHANGE_SECONDS: Final = (0, 5)
"""The same for a Job that changed. A planner that was about to end when the first came had still the Lease."""
SHARED: Final = timedelta(seconds=3)
"""A series of wake-ups serves also what comes so much later."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Said:
    """What one body says."""

    instances: Sequence[str] = ()
    """These are taken back."""
    agent: str | None = None
    """It saw a Job of a queue change."""


type _Series = tuple[str, tuple[int, ...]]
"""The wake-ups of one cluster."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WakeUpService:
    """Wakes the queues of clusters by events."""

    registry: Registry
    index: NodeIndex
    wake_ups: WakeUps
    clock: Clock
    telemetry: Telemetry
    drills: bool = False
    """Whether notices of the source `plimsoll.drill` count."""
    sent: dict[_Series, datetime] = field(default_factory=dict)
    """When this process sent it last."""

    def receive(self, bodies: Sequence[str]) -> Sequence[PlimsollError | None]:
        """Wake the clusters that a batch is about; return, in order, why a body has to come again.

        One that cannot be read is logged, and does not come again.
        """
        said = [self._read(body) for body in bodies]
        try:
            wanted = self._wanted(said)
        except PlimsollError as error:
            return [error if each.instances or each.agent else None for each in said]
        failed: dict[_Series, PlimsollError] = {}
        # Each series is sent once, however many bodies ask for it; they share its failure.
        for series in sorted({each for several in wanted for each in several}):
            try:
                self._send(series)
            except PlimsollError as error:
                failed[series] = error
        return [next((failed[s] for s in several if s in failed), None) for several in wanted]

    def _read(self, body: str) -> _Said:
        try:
            agent = agent_of(body)
            if agent is not None:
                return _Said(agent=agent)
            notices = parse(body, received=self.clock.now(), drills=self.drills)
        except BadInput as error:
            self.telemetry.warn("event not read", because=str(error))
            return _Said()
        return _Said(
            instances=[
                notice.instance
                for notice in notices
                if isinstance(notice, About) and notice.decision.effect is Effect.DRAIN
            ]
        )

    def _wanted(self, said: Sequence[_Said]) -> Sequence[Sequence[_Series]]:
        """Return, in order, which wake-ups each body asks for."""
        instances = [instance for each in said for instance in each.instances]
        nodes = self.index.find(instances) if instances else {}
        agents: dict[str, list[str]] = {}
        if any(each.agent for each in said):
            for cluster in self.registry.list():
                if cluster.agent is not None:
                    agents.setdefault(cluster.agent, []).append(cluster.name)
        return [
            [(nodes[i].cluster, AFTER_NOTICE_SECONDS) for i in each.instances if i in nodes]
            + [(name, AFTER_CHANGE_SECONDS) for name in agents.get(each.agent or "", ())]
            for each in said
        ]

    def _send(self, series: _Series) -> None:
        now, last = self.clock.now(), self.sent.get(series)
        if last is not None and now - last < SHARED:
            return
        cluster, delays = series
        self.wake_ups.send(cluster, delays)
        # Noted only after it was sent: a series that failed serves no later event.
        self.sent[series] = now
        self.telemetry.log("queues woken", cluster=cluster, after=list(delays))
