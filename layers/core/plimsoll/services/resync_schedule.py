"""Every minute asks for a resync of each registered cluster, every hour for a pre-flight, by a message for each.

Every minute asks for the zonal shifts of each account and region with clusters, too.
"""

from __future__ import annotations

from dataclasses import dataclass

from plimsoll.domain.registry import resync_requests
from plimsoll.domain.reports import Metric
from plimsoll.services.ports import Clock, RegisteredClusters, Resyncs, Telemetry


@dataclass(frozen=True, slots=True, kw_only=True)
class ResyncSchedule:
    """Asks for a resync of each registered cluster."""

    registry: RegisteredClusters
    resyncs: Resyncs
    clock: Clock
    telemetry: Telemetry

    def run(self, *, preflight: bool = False) -> None:
        """Send the requests of this minute, or those of this hour for pre-flights."""
        requests = resync_requests(self.registry.list(), self.clock.now(), preflight=preflight)
        self.resyncs.send(requests)
        if not requests and not preflight:
            self.telemetry.count(Metric.RESYNC_FINISHED)
