"""The agent of a cluster in a trial of the service: its own reader, spool and client, in minutes that pass at once."""

from __future__ import annotations

import time
from collections import Counter
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from pathlib import Path
from typing import Final

from plimsoll.adapters.kubernetes.requests import Requests
from plimsoll.adapters.workers import SerialWorkers
from plimsoll.domain.errors import Temporary
from plimsoll_agent.cluster_reader import ClusterReader
from plimsoll_agent.service import Service
from plimsoll_agent.snapshot_sender import SnapshotSender
from plimsoll_agent.spool import Spool
from plimsoll_service.wire.access import Accepted
from plimsoll_service.wire.snapshot import decode
from plimsoll_testbed.model.hollow.transport import HollowTransport
from plimsoll_testbed.rigs.emulated.service_shop import surplus_shop
from plimsoll_testbed.scenario.drill import Drill

MINUTE: Final = timedelta(minutes=1)
SPOOL_BYTES: Final = 3_400
"""Holds a full snapshot of this cluster and three deltas."""
LONGEST_PAUSE: Final = 0.3
"""Seconds: agents wait longer after a failure, and nobody would learn from it here."""


@dataclass(slots=True)
class _Minutes:
    """The clock of a cluster, which moves by whole minutes."""

    time: datetime

    def now(self) -> datetime:
        return self.time

    def sleep(self, seconds: float) -> None:
        self.time += timedelta(seconds=seconds)


@dataclass(slots=True)
class _Counted:
    """What an agent gave up, and why; the checker counts all else."""

    given_up: Counter[str] = field(default_factory=Counter)

    def taken(self, *, full: bool, size: int) -> None: ...
    def sent(self, size: int) -> None: ...
    def failed(self, what: str) -> None: ...
    def spooled(self, count: int, size: int) -> None: ...

    def dropped(self, why: str) -> None:
        self.given_up[why] += 1


@dataclass(slots=True, kw_only=True)
class TrialAgent:
    """The agent of one cluster, and what became of its snapshots."""

    tenant: str
    cluster: str
    service: Service
    drill: Drill
    start: datetime
    folder: Path
    away: bool = False
    """Whether the service is, for this agent."""
    counted: _Counted = field(default_factory=_Counted)
    minutes: dict[tuple[str, int], int] = field(default_factory=dict)
    """Epoch and sequence of each that was attempted -> its minute."""
    acknowledged: set[int] = field(default_factory=set)
    _clock: _Minutes = field(init=False)
    _reader: ClusterReader = field(init=False)
    telling: SnapshotSender = field(init=False)
    """It and its spool."""

    def __post_init__(self) -> None:
        self._clock = _Minutes(self.start)
        transport = HollowTransport(surplus_shop(self.drill, self.start), self._clock)
        requests = Requests(transport=transport, cluster="trial")
        self._reader = ClusterReader(requests, SerialWorkers(), self._clock, lambda _: None)
        self.restart()

    def restart(self) -> None:
        """Start it anew: a new epoch, and the spool as it lies on the disk."""
        self.telling = SnapshotSender(
            cluster_id=self.cluster,
            follow=self._reader.follow,
            read=self._reader.read,
            push=self._push,
            spool=Spool(self.folder, SPOOL_BYTES),
            clock=self._clock,
            measures=self.counted,
            warn=lambda _: None,
        )

    def take(self) -> None:
        """Take the snapshot of the next minute."""
        self._clock.sleep(MINUTE.total_seconds())
        self.telling.take()

    def send(self) -> None:
        """Send what waits, and pause as little as that allows."""
        time.sleep(min(self.telling.send(), LONGEST_PAUSE) if self.telling.spool.entries else 0)

    def lose_base(self) -> None:
        """Lose the newest full snapshot from the disk of the spool: what differs from it stays."""
        full = [entry for entry in self.telling.spool.entries if not entry.base]
        (self.folder / full[-1].name).unlink()

    def _push(self, body: bytes) -> Accepted:
        if self.away:
            raise Temporary("the service is away")
        told = decode(body)
        minute = round((told.taken_at - self.start) / MINUTE)
        self.minutes[told.epoch, told.sequence] = minute
        answer = self.service.push(body)
        self.acknowledged.add(minute)
        return answer
