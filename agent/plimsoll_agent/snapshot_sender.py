"""Tells the service of the cluster: takes snapshots, keeps them in the spool, and sends them.

The two are apart. While the service is away snapshots are taken all the same, so that what it says
about usage has no gap; what the spool cannot hold is counted.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Final, Protocol
from uuid import uuid4

from msgspec.structs import replace

from plimsoll.domain.errors import BadInput, PlimsollError, Temporary
from plimsoll.services.ports import Clock
from plimsoll_agent.backoff import pause_after
from plimsoll_agent.cluster_reader import Seen
from plimsoll_agent.snapshots import full_snapshot
from plimsoll_agent.spool import Spool
from plimsoll_service.wire import snapshot as wire
from plimsoll_service.wire.access import Accepted
from plimsoll_service.wire.documents import Unwritable

FULL_EVERY: Final = timedelta(hours=1)
"""A delta is to a full snapshot that is no older than this."""
LARGEST_DELTA: Final = 0.5
"""Of the full snapshot's size: beyond it another full one costs less in the long run."""
FIRST_INTERVAL: Final = 60.0
"""Seconds between snapshots until the service says otherwise."""


class Measures(Protocol):
    """What is counted for people."""

    def taken(self, *, full: bool, size: int) -> None:
        """A snapshot was taken."""

    def sent(self, size: int) -> None:
        """The service took a snapshot."""

    def dropped(self, why: str) -> None:
        """A snapshot was given up."""

    def failed(self, what: str) -> None:
        """Reading, sending or a poll failed; it is tried again."""

    def spooled(self, count: int, size: int) -> None:
        """So many snapshots wait to be sent."""


class Push(Protocol):
    """Sends a snapshot."""

    def __call__(self, body: bytes) -> Accepted:
        """Return the service's answer."""


@dataclass(slots=True, kw_only=True)
class SnapshotSender:
    """Takes and sends snapshots of one cluster."""

    cluster_id: str
    follow: Callable[[], None]
    """Takes in what happened in the cluster since."""
    read: Callable[[], Seen]
    about: Callable[[], wire.AgentState]
    """Returns what the agent tells of itself, beside the spool."""
    push: Push
    spool: Spool
    clock: Clock
    measures: Measures
    warn: Callable[[str], None]
    epoch: str = field(default_factory=lambda: str(uuid4()))
    interval: float = FIRST_INTERVAL
    """Seconds between snapshots, as the service last said."""
    pending: bool = False
    """Whether instructions wait, as the service last said."""
    sequence: int = 0
    _base: wire.Snapshot | None = None
    _base_size: int = 0
    _failures: int = 0

    def take(self) -> None:
        """Read the cluster and put a snapshot into the spool; what fails is counted."""
        try:
            seen = self.read()
        except PlimsollError as error:
            self.measures.failed("read")
            self.warn(f"the cluster is not read: {error}")
            return
        full = full_snapshot(
            seen,
            cluster_id=self.cluster_id,
            epoch=self.epoch,
            sequence=self.sequence + 1,
            now=self.clock.now(),
            agent=replace(
                self.about(), spooled=len(self.spool.entries), spool_bytes=self.spool.size
            ),
        )
        try:
            told, body = self._told(full)
        except Unwritable as error:
            self.measures.dropped("refused")
            self.warn(f"the service would refuse the snapshot: {error}")
            return
        try:
            dropped = self.spool.put(told.epoch, told.sequence, told.base, body)
        except (OSError, BadInput) as error:  # the sequence stays: what was never told is no gap
            self.measures.failed("spool")
            self.warn(f"the spool cannot be written: {error}")
            return
        # Raised only once the snapshot is in the spool.
        self.sequence = told.sequence
        if told.full:
            self._base, self._base_size = told, len(body)
        for _ in dropped:
            self.measures.dropped("spool full")
        if any(entry.sequence == told.base and entry.epoch == told.epoch for entry in dropped):
            self._base = None
        self.measures.taken(full=told.full, size=len(body))
        self._count()

    def keep_up(self) -> bool:
        """Take in what happened in the cluster, and return whether that worked; what fails is counted."""
        try:
            self.follow()
        except PlimsollError as error:
            self.measures.failed("watch")
            self.warn(f"the cluster is not watched: {error}")
            return False
        return True

    def send(self) -> float:
        """Send what is in the spool, oldest first, and return for how many seconds to wait at most."""
        while self.spool.entries:
            entry = self.spool.entries[0]
            try:
                # Removed only after the answer: the service keeps a
                # snapshot that arrives twice only once, under its number.
                self._heed(self.push(self.spool.body(entry)))
            except FileNotFoundError:
                self.measures.dropped("lost")
                self._base = None
            except BadInput as error:
                self.measures.dropped("refused")
                self.warn(f"snapshot {entry.epoch} {entry.sequence} is given up: {error}")
                self._base = None  # whatever it was, the next one stands for itself
            except (PlimsollError, OSError) as error:
                self._failures += 1
                self.measures.failed("send")
                self.warn(f"snapshots wait ({len(self.spool.entries)}): {error}")
                asked = error.retry_after if isinstance(error, Temporary) else None
                return pause_after(self._failures, asked=asked)
            else:
                self.measures.sent(entry.size)
            self._failures = 0
            self.spool.remove(entry)
            self._count()
        return self.interval

    def _told(self, full: wire.Snapshot) -> tuple[wire.Snapshot, bytes]:
        base = self._base
        if base is not None and full.taken_at - base.taken_at < FULL_EVERY:
            change = wire.delta(base, full)
            body = wire.encode(change)
            if len(body) <= LARGEST_DELTA * self._base_size:
                return change, body
        return full, wire.encode(full)

    def _heed(self, answer: Accepted) -> None:
        self.interval = float(answer.next_poll_s)
        self.pending = answer.instructions_pending
        if answer.left_out:
            self.warn(f"the service left out {answer.left_out} objects with invalid names")
        if answer.resync:
            self._base = None

    def _count(self) -> None:
        self.measures.spooled(len(self.spool.entries), self.spool.size)
