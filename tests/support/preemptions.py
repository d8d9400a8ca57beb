"""The history of preemptions in memory."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from plimsoll.domain.errors import Temporary
from plimsoll_batch.domain.jobs import PreemptionRecord


class MemoryPreemptions:
    """Implements `PreemptionHistory`."""

    def __init__(self) -> None:
        self.kept: dict[tuple[str, datetime, str], PreemptionRecord] = {}
        self.away = False
        """Whether nothing can be written."""

    def add(self, cluster: str, record: PreemptionRecord) -> None:
        if self.away:
            raise Temporary("the table is away")
        self.kept[cluster, record.at, record.gang] = record

    def list(
        self, cluster: str, *, limit: int, queue: str | None = None
    ) -> Sequence[PreemptionRecord]:
        mine = sorted((key for key in self.kept if key[0] == cluster), reverse=True)
        found = (self.kept[key] for key in mine)
        return [each for each in found if queue in {None, each.queue}][:limit]
