"""Another handler's interruption taint, which the agent of a cluster saw on a Node and forwarded.

The optimisation service puts it on the bus, and any tenant's agent may say anything: it is no notice about an
instance, but a reason to ask EC2, whose answer is one.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import datetime
from typing import ClassVar, Final

from plimsoll.domain.notices.decision import Decision, Effect
from plimsoll.domain.notices.envelope import Envelope

SERVICE_SOURCE: Final = "plimsoll.service"
TAINT_DETAIL_TYPE: Final = "Plimsoll Interruption Taint"
MOST_INSTANCES: Final = 100
"""Instances in one event: EC2 is asked about as many at once."""
AGENT_ID: Final = re.compile(r"[0-9A-Za-z-]{1,64}")


@dataclass(frozen=True, slots=True, kw_only=True)
class InterruptionTaint:
    """The node of an instance is said to be interrupted."""

    kind: ClassVar[str] = "interruption-taint"

    instance: str
    agent: str
    """Which agent says so, as the service proved; a cluster is bound to one in the registry."""
    time: datetime
    """When the service heard of it."""
    id: str

    @property
    def decision(self) -> Decision:
        """A question to EC2: alone it leads to nothing."""
        return Decision(effect=Effect.CONFIRM, reason="its node has another handler's taint")


def parse(event: Envelope) -> tuple[InterruptionTaint, ...]:
    """Read a notice for each instance; at least one is named."""
    agent = event.detail["agent"].matching(AGENT_ID, "letters, digits and -, 64 at most")
    named = dict.fromkeys(
        each.instance() for each in event.detail["instances"].each(MOST_INSTANCES)
    )
    if not named:
        raise event.detail["instances"].wrong("a list of instance ids")
    return tuple(
        InterruptionTaint(instance=each, agent=agent, time=event.time, id=event.id)
        for each in named
    )
