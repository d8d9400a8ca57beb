"""Which of the snapshots of a cluster is the newest, whatever the order in which they come.

Messages may come twice, late and out of order. Within an epoch the agent's numbers decide. Between
epochs the time decides at which the service took a snapshot, and an epoch that another has followed
never comes back.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import datetime
from typing import Final

from plimsoll_service.domain.snapshots.rollups import Span

PAST_EPOCHS: Final = 20
"""How many are remembered. A late message is hours old at most, an epoch begins with an agent."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Arrival:
    """A snapshot that was acknowledged. It lies in the bucket; this goes through the queue."""

    tenant: str
    cluster: str
    epoch: str
    sequence: int
    base: int
    """The sequence of the full snapshot that it differs from; 0: it is full."""
    received_at: datetime
    digest: str
    """SHA-256 of what lies in the bucket."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Newest:
    """Which snapshot of a cluster counts."""

    epoch: str
    sequence: int
    base: int
    received_at: datetime
    taken_at: datetime
    past: tuple[str, ...] = ()
    """Epochs that were followed by others, the last one at the end."""
    owed: tuple[tuple[Span, datetime], ...] = ()
    """Hours and days that are to be made anew, by their start."""
    remade_at: datetime | None = None
    """When one of them was made last."""

    def is_of(self, arrival: Arrival) -> bool:
        """Whether an arrival is the one that counts, come once more."""
        return (self.epoch, self.sequence) == (arrival.epoch, arrival.sequence)


def newest_after(known: Newest | None, arrival: Arrival, taken_at: datetime) -> Newest | None:
    """Return which snapshot counts after an arrival; None: the one that counts already."""
    found = Newest(
        epoch=arrival.epoch,
        sequence=arrival.sequence,
        base=arrival.base,
        received_at=arrival.received_at,
        taken_at=taken_at,
    )
    if known is None:
        return found
    # Within an epoch the agent's numbers decide, whatever the clocks say.
    if known.epoch == arrival.epoch:
        newer = arrival.sequence > known.sequence
        return replace(found, past=known.past) if newer else None
    if arrival.epoch in known.past or arrival.received_at <= known.received_at:
        return None
    return replace(found, past=(*known.past, known.epoch)[-PAST_EPOCHS:])
