"""What agents saw and others act on: put on the bus at once.

The service vouches for who says it, and for nothing else. Whether an instance is of that agent's cluster and ends, the
interruption path finds out from EC2; what changed in a queue, its planner sees in the cluster.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from plimsoll_service.domain.access import Principal
from plimsoll_service.services.limits import count
from plimsoll_service.services.ports import Bus, Clock, Members
from plimsoll_service.wire.documents import decode
from plimsoll_service.wire.taints import Forwarded, TaintedInstances

REQUESTS_PER_MINUTE: Final = 30
"""Of one cluster, each with a hundred instances at most: what is forwarded shares a queue with AWS's own
notices, and asks of EC2 what the whole account may ask only so often."""
CHANGES_PER_MINUTE: Final = 30
"""Of one cluster: an agent says it every few seconds at most, and each wakes a planner."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TaintForwarding:
    """Forwards taints, and changes of queues."""

    members: Members
    bus: Bus
    clock: Clock

    def forward(self, agent: Principal, body: bytes) -> Forwarded:
        """Put on the bus what an agent saw.

        Raises:
            Malformed: it names no instances.
            Throttled: it says too much.
            Temporary: the bus does not take it.
        """
        self._count(agent, "taints", REQUESTS_PER_MINUTE)
        said = decode(body, TaintedInstances)
        self.bus.forward(agent.subject, said.instances)
        return Forwarded(forwarded=len(said.instances))

    def queue_changed(self, agent: Principal) -> Forwarded:
        """Put on the bus that an agent saw a Job of a queue change.

        Raises:
            Throttled: it says so too often.
            Temporary: the bus does not take it.
        """
        self._count(agent, "queue-changes", CHANGES_PER_MINUTE)
        self.bus.queue_changed(agent.subject)
        return Forwarded(forwarded=1)

    def _count(self, agent: Principal, what: str, most: int) -> None:
        count(self.members, agent.subject, what, most=most, now=self.clock.now())
