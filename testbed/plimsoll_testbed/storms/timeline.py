"""What happens in a storm, as plain values, and the entries of a timeline that they stand for."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

type Json = dict[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Notices:
    """Notices about nodes of a group, or of a whole zone."""

    at: int
    notice: str
    group: str | None = None
    zone: str | None = None
    count: int | None = None
    """None for all of them."""
    spread_seconds: int = 0
    reclaim_seconds: int | None = None
    state: str | None = None

    def rendered(self) -> Json:
        """Return it as a scenario says it."""
        chosen = {"group": self.group, "zone": self.zone, "count": self.count}
        entry: Json = {
            "at": f"{self.at}s",
            "notice": self.notice,
            "nodes": {field: value for field, value in chosen.items() if value is not None},
        }
        if self.spread_seconds:
            entry["spread"] = f"{self.spread_seconds}s"
        if self.reclaim_seconds is not None:
            entry["reclaim"] = f"{self.reclaim_seconds}s"
        if self.state is not None:
            entry["state"] = self.state
        return entry


@dataclass(frozen=True, slots=True, kw_only=True)
class Fault:
    """Something that fails for a while."""

    at: int
    fault: str
    seconds: int
    more: tuple[tuple[str, str | float], ...] = ()
    """Its other fields, as a scenario names them."""
    group: str | None = None

    def rendered(self) -> Json:
        """Return it as a scenario says it."""
        entry: Json = {"at": f"{self.at}s", "fault": self.fault, "for": f"{self.seconds}s"}
        entry |= dict(self.more)
        if self.group is not None:
            entry["nodes"] = {"group": self.group}
        return entry


@dataclass(frozen=True, slots=True, kw_only=True)
class Rescale:
    """The owner declares another count."""

    at: int
    workload: str
    replicas: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Rollout:
    """The owner applies another pod template."""

    at: int
    workload: str


type Event = Notices | Fault | Rescale | Rollout
