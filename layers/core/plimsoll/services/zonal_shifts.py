"""Records zonal shifts, and wakes the drains of the clusters that they are about.

Events tell of them. Every minute, for every account and region with clusters, ARC is asked what stands, and what no
event told is written beside the events, as an event of its own. Where it does not answer, nothing changes: what is
known stands.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache

from plimsoll.domain.errors import PlimsollError, Temporary
from plimsoll.domain.notices import ZonalShift
from plimsoll.domain.registry import Cluster, Mode, ResyncRequest
from plimsoll.domain.zones import ShiftEvent, inferred_events, newest_events, shift_report
from plimsoll.services.ports import (
    Clock,
    Instances,
    Pools,
    RegisteredClusters,
    Reports,
    Telemetry,
    WakeUps,
    ZonalShifts,
)
from plimsoll.services.retry_policy import SLOW_WAKE_UPS
from plimsoll.services.trusted_sources import TrustedSources


@dataclass(frozen=True, slots=True, kw_only=True)
class ZonalShiftService:
    """Hears of zonal shifts, and asks for those of one account and region at a time."""

    registry: RegisteredClusters
    instances_of: Callable[[Cluster], Instances]
    shifts_of: Callable[[Cluster], ZonalShifts]
    pools: Pools
    reports: Reports
    wake_ups: WakeUps
    clock: Clock
    telemetry: Telemetry
    sources: TrustedSources

    def hear(self, shift: ZonalShift) -> None:
        """Keep for people what an event tells, and record it for the clusters that it is about.

        Raises:
            PlimsollError: this failed for a cluster; it was tried for all.
        """
        reason = shift.decision.reason
        if self.sources.account not in {None, shift.account}:
            reason += f", in the account {shift.account}"
        # The report is written even if no cluster can be told. A repeated event merges into the same report.
        self.reports.merge(shift_report(shift, reason))
        failed: PlimsollError | None = None
        for cluster in self.registry.list() if shift.zone_id else ():
            if not self.sources.has_sent(shift, cluster):
                continue
            try:
                for event in self._events([cluster], [shift], self.instances_of(cluster).zones):
                    self._record(cluster.place, event, [cluster])
            except PlimsollError as error:
                failed = error
        if failed is not None:
            raise failed

    def run(self, request: ResyncRequest) -> None:
        """Write down what stands and was not told, and what is over; one that fails is asked again in a minute."""
        place = request.place or ""
        try:
            clusters = [each for each in self.registry.list() if each.place == place]
            if clusters and not request.is_late(self.clock.now()):
                self._ask(place, clusters)
        except PlimsollError as error:
            self.telemetry.warn("zonal shifts not asked for", place=place, because=str(error))

    def _ask(self, place: str, clusters: Sequence[Cluster]) -> None:
        # The time is read before ARC is asked: a shift that begins meanwhile must not count as over.
        asked = self.clock.now()
        by, listed = self._listed(clusters)
        zones = cache(self.instances_of(by).zones)
        standing = [*self._events(clusters, listed, zones)]
        known = self.pools.shifts(place, asked)
        stood = {shift for shift, last in newest_events(known).items() if last.active}
        for event in inferred_events(known, standing, asked):
            news = not (event.active and event.shift in stood)
            if news:
                # Reported before it is recorded: a run that dies in between reports twice rather than never.
                self._tell(event, zones())
            self._record(place, event, clusters if news else ())

    def _record(self, place: str, event: ShiftEvent, woken: Sequence[Cluster]) -> None:
        """Write an event down, and wake those of the clusters that it is about and that may be written to."""
        # Written before the wake-ups: a reconcile reads the shifts once, at its start.
        self.pools.put_shift(place, event)
        for cluster in woken:
            if event.cluster in {None, cluster.name} and cluster.mode is Mode.ACT:
                self.wake_ups.send(cluster.name, SLOW_WAKE_UPS)

    def _listed(self, clusters: Sequence[Cluster]) -> tuple[Cluster, Sequence[ZonalShift]]:
        """Return what ARC lists, and by which cluster's role: the first that answers counts."""
        refused: PlimsollError = Temporary("nobody was asked")
        for cluster in {(each.role, each.external_id): each for each in clusters}.values():
            try:
                return cluster, self.shifts_of(cluster).active()
            except PlimsollError as error:
                refused = error
        raise refused

    def _events(
        self,
        clusters: Sequence[Cluster],
        listed: Sequence[ZonalShift],
        zones: Callable[[], Mapping[str, str]],
    ) -> Iterator[ShiftEvent]:
        """Yield what is listed for each cluster that it is about. EC2 is asked for names of zones only then."""
        for shift in listed:
            for cluster in clusters:
                if not shift.is_about(cluster.name):
                    continue
                zone = zones().get(shift.zone_id or "")
                if zone is None:
                    self.telemetry.warn("zone not known", cluster=cluster.name, zone=shift.zone_id)
                else:
                    yield ShiftEvent.of(shift, cluster.name, zone)

    def _tell(self, event: ShiftEvent, zones: Mapping[str, str]) -> None:
        """Log what no event told, and keep it for people."""
        zone_id = {name: known for known, name in zones.items()}.get(event.zone)
        found = ZonalShift(
            zone_id=zone_id,
            cause=event.cause,
            active=event.active,
            time=event.at,
            account="",
            region=None,
            id=f"{event.cause}/{event.cluster or 'all'}/{event.at:%Y%m%dT%H%M%S}",
        )
        reason = f"{found.decision.reason}, of which no event told"
        self.telemetry.log(
            "zonal shift found", zone=event.zone, cluster=event.cluster, because=reason
        )
        self.reports.merge(shift_report(found, reason))
