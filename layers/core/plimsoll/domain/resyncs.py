"""What the schedule asks for, by a message for each cluster: a resync every minute, a pre-flight every hour."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from datetime import datetime, timedelta
from typing import Final, Self

from plimsoll.domain.clusters import Cluster
from plimsoll.domain.metrics import labelled

RESYNC_EVERY: Final = timedelta(minutes=1)
"""The schedule's rate in the template."""
PREFLIGHT_EVERY: Final = timedelta(hours=1)
"""The other rate."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ResyncRequest:
    """One message: resync this cluster now, or compare what would be short in a storm."""

    cluster: str
    label: str
    """The cluster's name in metrics."""
    until: str
    """When the next one is sent, in ISO 8601: who receives this one later leaves the work to that."""
    preflight: bool = False

    @classmethod
    def read(cls, text: str) -> Self:
        """Return the request that a message carries."""
        return cls(**json.loads(text))

    def message(self) -> str:
        """Return the message."""
        return json.dumps(asdict(self))

    def is_late(self, now: datetime) -> bool:
        """Whether the next request for the cluster has been sent."""
        return now >= datetime.fromisoformat(self.until)


def resync_requests(
    clusters: Sequence[Cluster], now: datetime, *, preflight: bool = False
) -> Sequence[ResyncRequest]:
    """Return the requests of one minute, or those of one hour for pre-flights."""
    until = (now + (PREFLIGHT_EVERY if preflight else RESYNC_EVERY)).isoformat()
    return [
        ResyncRequest(cluster=cluster.name, label=label, until=until, preflight=preflight)
        for cluster, label in labelled(clusters)
    ]
