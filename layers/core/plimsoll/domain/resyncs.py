"""What the schedule asks for every minute: one resync of each cluster, by a message of its own."""

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


@dataclass(frozen=True, slots=True, kw_only=True)
class ResyncRequest:
    """One message: resync this cluster now."""

    cluster: str
    label: str
    """The cluster's name in metrics."""
    until: str
    """When the next one is sent, in ISO 8601: who receives this one later leaves the work to that."""

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


def resync_requests(clusters: Sequence[Cluster], now: datetime) -> Sequence[ResyncRequest]:
    """Return the requests of one minute."""
    until = (now + RESYNC_EVERY).isoformat()
    return [
        ResyncRequest(cluster=cluster.name, label=label, until=until)
        for cluster, label in labelled(clusters)
    ]
