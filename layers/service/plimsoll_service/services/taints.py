"""Interruption taints that agents forward: put on the bus, by which the interruption path asks EC2.

The service vouches for who says it, and for nothing else. Whether the instance is of that agent's cluster, and
whether it ends, the interruption path finds out.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from plimsoll_service.domain.principals import Principal
from plimsoll_service.services.limits import count
from plimsoll_service.services.ports import Bus, Clock, Tenants
from plimsoll_service.wire.taints import Forwarded, TaintedInstances

REQUESTS_PER_MINUTE: Final = 30
"""Of one cluster, each with a hundred instances at most: what is forwarded shares a queue with AWS's own
notices, and asks of EC2 what the whole account may ask only so often."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TaintForwarding:
    """Forwards taints."""

    tenants: Tenants
    bus: Bus
    clock: Clock

    def forward(self, agent: Principal, said: TaintedInstances) -> Forwarded:
        """Put on the bus what an agent saw.

        Raises:
            Throttled: it says too much.
            Temporary: the bus does not take it.
        """
        data, now = self.tenants.of(agent.tenant), self.clock.now()
        count(data, agent.subject, "taints", most=REQUESTS_PER_MINUTE, now=now)
        self.bus.forward(agent.subject, said.instances)
        return Forwarded(forwarded=len(said.instances))
