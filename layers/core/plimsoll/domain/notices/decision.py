"""What a notice leads to, in words. Each kind decides it beside its type.

A kind that leads to a drain is recorded on the Node; how fast the drain must be is the business of
the deadline, not of the kind.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import ClassVar


class Effect(StrEnum):
    """What to do with a notice."""

    DRAIN = "drain"
    """Cordon, record on the Node, move the workloads."""
    GONE = "gone"
    """The instance is proven gone: record it where a Node is left."""
    WITHDRAW = "withdraw"
    """Something announced was called off: merge it into the record if there is one."""
    CONFIRM = "confirm"
    """Ask EC2, and go by what it says."""
    SHOW = "show"
    """Keep and show it; it is about no instance."""
    NOTHING = "nothing"
    """Acknowledge it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Decision:
    """What a notice leads to, and why."""

    effect: Effect
    reason: str

    @property
    def merges(self) -> bool:
        """Say whether the notice belongs in an interruption."""
        return self.effect in (Effect.DRAIN, Effect.GONE, Effect.WITHDRAW)


def drains(reason: str) -> Decision:
    """Decide to move the workloads."""
    return Decision(effect=Effect.DRAIN, reason=reason)


def nothing(reason: str) -> Decision:
    """Decide to acknowledge it."""
    return Decision(effect=Effect.NOTHING, reason=reason)


def clock_text(time: datetime) -> str:
    """Return a time as reasons name it: ISO 8601 in UTC, in whole seconds."""
    return f"{time:%Y-%m-%dT%H:%M:%SZ}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Unknown:
    """An event of no kind in the table: a type of its own, so that it is counted and shown, not lost."""

    kind: ClassVar[str] = "unknown"

    source: str
    detail_type: str
    why: str
    time: datetime
    """When it was received: its own time was not looked at."""
    id: str | None = None

    @property
    def decision(self) -> Decision:
        """Nothing, but that it is counted and shown."""
        return nothing(f"{self.detail_type} from {self.source}: {self.why}")
