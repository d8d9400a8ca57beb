"""A round of advice: every enrolled cluster is analysed, one after another, within the time there is."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime
from hashlib import sha256

from plimsoll_service.domain.principals import Principal
from plimsoll_service.services.ports import Clock, Members, Tenants
from plimsoll_service.services.recommendations import Advised, Prices, advise
from plimsoll_service.wire.instructions import Signer


@dataclass(frozen=True, slots=True, kw_only=True)
class Round:
    """What a round did, by the id of the cluster."""

    advised: dict[str, Advised | None]
    """None: no snapshot of it is there."""
    failed: dict[str, Exception]
    left: tuple[str, ...]
    """For which there was no time: the next round draws another order."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AdviceRounds:
    """Advises all clusters of all tenants."""

    tenants: Tenants
    members: Members
    prices: Prices
    signer: Callable[[], Signer]
    clock: Clock

    def run(self, is_time_left: Callable[[], bool]) -> Round:
        """Advise each cluster. What fails for one is told, and costs no other."""
        found = Round(advised={}, failed={}, left=())
        agents = _drawn(self.members.agents(), self.clock.now())
        for number, agent in enumerate(agents):
            if not is_time_left():
                left = tuple(each.subject for each in agents[number:])
                return Round(advised=found.advised, failed=found.failed, left=left)
            try:
                found.advised[agent.subject] = advise(
                    self.tenants.of(agent.tenant),
                    agent.subject,
                    prices=self.prices,
                    signer=self.signer(),
                    now=self.clock.now(),
                )
            except Exception as error:  # noqa: BLE001 - whatever it is, it must not take the others along
                found.failed[agent.subject] = error
        return found


def _drawn(agents: Sequence[Principal], now: datetime) -> Sequence[Principal]:
    """Return them in an order that differs each time: where time is short, it is short for each in turn."""
    return sorted(agents, key=lambda each: sha256(f"{now}{each.subject}".encode()).digest())
