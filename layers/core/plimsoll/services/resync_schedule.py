"""Every minute: asks for a resync of each registered cluster, by a message for each."""

from __future__ import annotations

from dataclasses import dataclass

from plimsoll.domain.metrics import Metric
from plimsoll.domain.resyncs import resync_requests
from plimsoll.services.ports import Clock, Registry, Resyncs, Telemetry


@dataclass(frozen=True, slots=True, kw_only=True)
class ResyncSchedule:
    """Asks for a resync of each registered cluster."""

    registry: Registry
    resyncs: Resyncs
    clock: Clock
    telemetry: Telemetry

    def run(self) -> None:
        """Send the requests of this minute."""
        requests = resync_requests(self.registry.list(), self.clock.now())
        self.resyncs.send(requests)
        if not requests:
            self.telemetry.count(Metric.RESYNC_FINISHED)
