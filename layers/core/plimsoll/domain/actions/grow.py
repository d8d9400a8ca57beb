"""Ask a node group for more nodes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from plimsoll.domain.actions.base import Wave
from plimsoll.domain.actions.writers import Writers
from plimsoll.domain.groups import NodeGroup


@dataclass(frozen=True, slots=True, kw_only=True)
class Grow:
    """Ask for nodes; never lowers anything."""

    verb: ClassVar[str] = "grow"
    wave: ClassVar[Wave] = Wave.CAPACITY

    group: NodeGroup
    add: int
    zone: str | None
    token: str
    """Made from what it is for: the same ask, sent twice, is one."""
    reason: str

    @property
    def target(self) -> str:
        """The group and how many."""
        where = f" in {self.zone}" if self.zone else ""
        return f"{self.group.kind} {self.group.name} by {self.add}{where}"

    def perform(self, writers: Writers) -> None:
        """Ask once."""
        writers.capacity.grow(self.group, self.add, self.zone, self.token)
