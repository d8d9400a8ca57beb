"""What the agent tells of itself in each snapshot."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from plimsoll.domain.errors import BadInput, PlimsollError
from plimsoll_agent.owner_policy import OwnerPolicy
from plimsoll_service.wire.snapshot import AgentState

VERSION: Final = "0.3.0"
"""The image holds no metadata of packages: a test compares it with the project's."""


def agent_state(policy: Callable[[], OwnerPolicy]) -> AgentState:
    """Return what is told beside the spool.

    Args:
        policy: reads the owner's policy. What it raises is told, and costs no snapshot.
    """
    try:
        found = policy()
    except BadInput:
        return AgentState(version=VERSION, policy="invalid")
    except PlimsollError:
        return AgentState(version=VERSION, policy="unreadable")
    return AgentState(
        version=VERSION, mode=found.mode, policy="valid", kinds=tuple(sorted(found.kinds))
    )
