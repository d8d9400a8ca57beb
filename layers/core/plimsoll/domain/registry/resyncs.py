"""What the schedule asks for, by a message for each cluster: a resync every minute, a pre-flight every hour.

Every minute has also one for each account and region with clusters: which zonal shifts stand there.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass, fields, replace
from datetime import datetime, timedelta
from typing import Final, Self

from plimsoll.domain.registry.clusters import Cluster, labelled

RESYNC_EVERY: Final = timedelta(minutes=1)
"""The schedule's rate in the template."""
PREFLIGHT_EVERY: Final = timedelta(hours=1)
"""The other rate."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ResyncRequest:
    """One message: resync this cluster now, compare what would be short in a storm, or ask for zonal shifts."""

    cluster: str
    label: str
    """The cluster's name in metrics."""
    until: str
    """When the next one is sent, in ISO 8601: who receives this one later leaves the work to that."""
    preflight: bool = False
    place: str | None = None
    """The account and region whose zonal shifts are asked for, the first cluster of which is named."""

    @classmethod
    def read(cls, text: str) -> Self:
        """Return the request that a message carries; fields that a newer version added are left out."""
        known = {each.name for each in fields(cls)}
        return cls(**{name: value for name, value in json.loads(text).items() if name in known})

    def message(self) -> str:
        """Return the message."""
        return json.dumps({name: value for name, value in asdict(self).items() if value})

    def is_late(self, now: datetime) -> bool:
        """Whether the next request for the cluster has been sent."""
        return now >= datetime.fromisoformat(self.until)


def resync_requests(
    clusters: Sequence[Cluster], now: datetime, *, preflight: bool = False
) -> Sequence[ResyncRequest]:
    """Return the requests of one minute, or those of one hour for pre-flights.

    Zonal shifts are asked for as often as clusters are resynced: they matter within minutes, and ARC takes
    no money for being asked. All clusters of an account and region share the answer.
    """
    until = (now + (PREFLIGHT_EVERY if preflight else RESYNC_EVERY)).isoformat()
    requests = [
        ResyncRequest(cluster=cluster.name, label=label, until=until, preflight=preflight)
        for cluster, label in labelled(clusters)
    ]
    if preflight:
        return requests
    # The first cluster of each place, by name. Its answer serves all clusters there.
    first: dict[str, ResyncRequest] = {}
    for cluster, request in zip(clusters, requests, strict=True):
        first.setdefault(cluster.place, replace(request, place=cluster.place))
    return [*requests, *first.values()]
