"""What we were sent and do not know: a type of its own, so that it is counted and shown, not lost."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import ClassVar

from plimsoll.domain.notices.decision import Decision, nothing


@dataclass(frozen=True, slots=True, kw_only=True)
class Unknown:
    """An event of no kind in the table."""

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
