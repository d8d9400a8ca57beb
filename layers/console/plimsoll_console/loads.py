"""How much of each workload stands on spot, and what stays Ready of it if that goes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:  # the first page does not wait for what it never needs
    from plimsoll.domain.kubernetes import Ref
    from plimsoll.domain.placement import Mark

LOSSES: Mapping[str, str] = {
    "node": "a spot node",
    "family": "a spot family",
    "zone": "a zone's spot",
    "all spot": "all spot",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Load:
    """One workload."""

    ref: Ref
    replicas: int
    ready: int
    spot: int
    """Of the Ready pods, how many stand on spot."""
    line: int | None = None
    """How many of its replicas its owner wants on on-demand: its load line; None where nobody asks for any."""
    reason: str = ""
    lacks: str = ""
    """What its pod template lacks for that."""
    met: bool = True
    marks: tuple[Mark, ...] = ()
    """What stays if the worst node, family, zone or all spot goes, the smallest loss first."""

    @property
    def on_demand(self) -> int:
        """Ready pods that do not stand on spot."""
        return self.ready - self.spot

    @property
    def least(self) -> int:
        """What stays if all spot goes."""
        return self.on_demand

    @property
    def short(self) -> int:
        """How many fewer stay than promised."""
        return max(0, (self.line or 0) - self.least)


def loss_words(mark: Mark) -> str:
    """Return what goes, in words: hostile names are escaped by whoever shows them."""
    return LOSSES[mark.kind] + (f" ({mark.name})" if mark.name and mark.kind != "all spot" else "")
