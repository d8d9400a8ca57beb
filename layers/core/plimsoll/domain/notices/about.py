"""What every notice about an instance says, whatever its kind."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from datetime import datetime
from typing import ClassVar, TypedDict

from plimsoll.domain.notices.decision import Decision


class Common(TypedDict):
    """The fields that an envelope fills in for every notice about an instance."""

    instance: str
    time: datetime
    account: str
    region: str | None
    id: str
    zone: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class About(ABC):
    """A notice about one instance.

    Its id is the same for every copy of the notice, and different for two notices; it is not always
    the id of the EventBridge event, which changes with each copy.
    """

    kind: ClassVar[str]

    instance: str
    time: datetime
    """When AWS says it happened (UTC), not when it reached us: deadlines count from here."""
    account: str
    """Who owns the instance, not who was told."""
    region: str | None
    """Where the instance is; None when neither the body nor the caller says."""
    id: str
    zone: str | None = None
    """The name of the zone (us-east-1b) where the event gives it."""

    @property
    def ends(self) -> datetime | None:
        """The moment after which the instance cannot be counted on; None when AWS names none."""
        return None

    @property
    @abstractmethod
    def decision(self) -> Decision:
        """What it leads to, and why."""
