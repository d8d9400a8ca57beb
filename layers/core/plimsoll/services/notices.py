"""What happens to a notice: whose is it, cordon the node at once, wake the drain.

A batch is handled as one: one look-up for all its instances, the cordons side by side, one series
of wake-ups for each cluster; those that are acted on come before those that are only observed. Everything may be repeated: a notice that stands in the record already
writes nothing, but wakes the drain again, for whoever handled it before may have died in between.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from functools import partial

from plimsoll.domain.errors import Permanent, PlimsollError, Temporary
from plimsoll.domain.interruptions import actionable
from plimsoll.domain.kubernetes import ClusterEvent, event_of_cordon
from plimsoll.domain.notices import (
    About,
    Canary,
    Decision,
    InstanceNotice,
    Notice,
    ZonalShift,
    parse,
)
from plimsoll.domain.registry import Cluster, IndexEntry, Mode
from plimsoll.domain.reports import Metric, canary_echo
from plimsoll.domain.spot import KIND_OF_NOTICE, CapacityPool, PoolEvent
from plimsoll.domain.zones import ShiftEvent, shift_report
from plimsoll.services.cluster_events import create_events
from plimsoll.services.dry_run import DryRun
from plimsoll.services.instance_locator import InstanceLocator
from plimsoll.services.node_cordon import (
    Cordoned,
    LocatedNotice,
    by_instance,
    cordon,
    find_nodes,
    heeded,
)
from plimsoll.services.ports import (
    Clock,
    ClusterApi,
    Clusters,
    Instances,
    Pools,
    Registry,
    Reports,
    Telemetry,
    WakeUps,
    Workers,
)
from plimsoll.services.retry_policy import SERIES_SHARED, SLOW_WAKE_UPS, URGENT_WAKE_UPS
from plimsoll.services.taint_confirmation import TaintConfirmation
from plimsoll.services.trusted_sources import TrustedSources


@dataclass(frozen=True, slots=True, kw_only=True)
class NoticeService:
    """Handles notices."""

    locator: InstanceLocator
    instances_of: Callable[[Cluster], Instances]
    confirmation: TaintConfirmation
    registry: Registry
    clusters: Clusters
    dry_run: DryRun
    reports: Reports
    pools: Pools
    wake_ups: WakeUps
    clock: Clock
    workers: Workers
    telemetry: Telemetry
    sources: TrustedSources
    kill_switch: bool = False
    series: dict[str, datetime] = field(default_factory=dict)
    """By cluster, when this process last sent all urgent wake-ups."""

    def receive(self, bodies: Sequence[str]) -> Sequence[Exception | None]:
        """Handle a batch and return, in order, why each body was not (wholly) handled; else None.

        Handling a body again never hurts.
        """
        read = self.confirmation.of([self._read(body) for body in bodies])
        failed: dict[Notice, Exception] = {}
        draining: list[tuple[InstanceNotice, Decision]] = []
        for notice in (
            n for notices in read if not isinstance(notices, Exception) for n in notices
        ):
            decision = actionable(notice)
            if isinstance(notice, About) and decision.merges:
                draining.append((notice, decision))
                continue
            try:
                self._acknowledge(notice, decision)
            except PlimsollError as error:
                failed[notice] = error
        by_cluster, unlocated = self._by_cluster(draining)
        failed |= unlocated
        clusters: list[tuple[Cluster, Sequence[LocatedNotice]]] = []
        for name, found in sorted(by_cluster.items()):
            try:
                cluster = self.registry.get(name)
            except PlimsollError as error:
                failed |= dict.fromkeys((located.notice for located in found), error)
                continue
            ours = [located for located in found if self._is_of(cluster, located.notice)]
            if len(ours) < len(found):
                self.telemetry.count(Metric.NOTICES_NOT_OURS, len(found) - len(ours))
            if cluster is not None and ours:
                clusters.append((cluster, ours))
        for cluster, found in sorted(clusters, key=lambda item: item[0].mode is not Mode.ACT):
            try:
                failed |= self.deliver(cluster, self.clusters.open(cluster), found)
            except PlimsollError as error:
                failed |= dict.fromkeys((located.notice for located in found), error)
        return [
            notices
            if isinstance(notices, Exception)
            else next((failed[notice] for notice in notices if notice in failed), None)
            for notices in read
        ]

    def deliver(
        self, cluster: Cluster, api: ClusterApi, found: Sequence[LocatedNotice]
    ) -> Mapping[Notice, Exception]:
        """Cordon the nodes of notices and wake the drain; return why some could not be handled.

        In a cluster that is only observed, log and keep what would be done instead.

        Raises:
            Temporary: the wake-ups were not sent, or an observed cluster cannot be read now.
        """
        ignored = len(found) - len(found := heeded(cluster, found))
        if ignored:
            self.telemetry.count(Metric.NOTICES_IGNORED, ignored)
            self.telemetry.log("notices ignored", cluster=cluster.name, policy=str(cluster.policy))
        if self.kill_switch or cluster.mode is not Mode.ACT:
            self._foresee(cluster, api, found)
            self._remember(cluster, found)
            return {}
        batches = by_instance(found)
        nodes = find_nodes(api, batches, self.workers)
        answers = self.workers.run(
            [
                partial(cordon, api, batch, node, self.clock)
                for batch, node in zip(batches, nodes, strict=True)
            ]
        )
        failed: dict[Notice, Exception] = {}
        urgent: list[bool] = []
        events: list[ClusterEvent] = []
        for batch, answer in zip(batches, answers, strict=True):
            match answer:
                case Cordoned():
                    advised = answer.interruption.on_advice(self.clock.now())
                    urgent.append(answer.interruption.deadline is not None and not advised)
                    self._say(batch, answer)
                    if answer.written and answer.interruption.cordoned is not None:
                        events.append(
                            event_of_cordon(answer.interruption, batch[0].decision.reason)
                        )
                case str() as why:
                    self.telemetry.log("notice leads to nothing", because=why)
                case error:
                    failed |= dict.fromkeys((located.notice for located in batch), error)
        if not urgent and any(isinstance(error, Temporary) for error in failed.values()):
            self.wake_ups.send(cluster.name, (0,))  # it asks for capacity where the cluster is away
        if urgent:
            self._wake(cluster.name, urgent=any(urgent))
        create_events(api, events, self.workers, self.telemetry)
        self._remember(cluster, found)
        return failed

    def _remember(self, cluster: Cluster, found: Sequence[LocatedNotice]) -> None:
        """Write down which capacity pools are reclaimed. No notice comes back for that."""
        events = [
            PoolEvent(pool=CapacityPool(of_type, zone, "spot"), kind=kind, at=located.notice.time)
            for located in found
            if (kind := KIND_OF_NOTICE.get(located.notice.kind))
            and (of_type := located.entry.instance_type)
            and (zone := located.entry.zone)
        ]
        try:
            self.pools.put(cluster.place, events)
        except PlimsollError as error:
            self.telemetry.warn("capacity pools not written", because=str(error))

    def _wake(self, cluster: str, *, urgent: bool) -> None:
        """Send a series of wake-ups, or a single one if this process sent an urgent series just before."""
        now, last = self.clock.now(), self.series.get(cluster)
        if urgent and last is not None and now - last < SERIES_SHARED:
            self.wake_ups.send(cluster, (0,))
            return
        self.wake_ups.send(cluster, URGENT_WAKE_UPS if urgent else SLOW_WAKE_UPS)
        if urgent:
            self.series[cluster] = now

    def _read(self, body: str) -> tuple[Notice, ...] | Exception:
        try:
            return parse(
                body,
                received=self.clock.now(),
                drills=self.sources.drills,
                region=self.sources.region,
            )
        except PlimsollError as error:
            return error

    def _by_cluster(
        self, draining: Sequence[tuple[InstanceNotice, Decision]]
    ) -> tuple[Mapping[str, Sequence[LocatedNotice]], Mapping[Notice, Exception]]:
        """Return the notices that are ours by cluster, and why some cannot be located now."""
        owners = self.locator.of([notice for notice, _ in draining])
        found: dict[str, list[LocatedNotice]] = defaultdict(list)
        failed: dict[Notice, Exception] = {}
        for notice, decision in draining:
            match owners[notice.instance]:
                case IndexEntry() as entry:
                    located = LocatedNotice(notice=notice, decision=decision, entry=entry)
                    found[entry.cluster].append(located)
                case str():  # the locator has counted and logged it
                    continue
                case error:
                    failed[notice] = error
        return found, failed

    def _is_of(self, cluster: Cluster | None, notice: InstanceNotice) -> bool:
        """Whether a notice comes from where the cluster is: an instance's id alone proves nothing."""
        if cluster is None:
            return False
        account = cluster.account or self.sources.account
        here = notice.region in {None, cluster.region} and account in {None, notice.account}
        if not here:
            self.telemetry.warn(
                "notice from another account or region",
                cluster=cluster.name,
                instance=notice.instance,
                account=notice.account,
                region=notice.region,
            )
        return here

    def _acknowledge(self, notice: Notice, decision: Decision) -> None:
        """Count and log a notice that no node is cordoned for, and keep what people ask for."""
        if isinstance(notice, Canary):
            self._echo(notice)
            return
        if isinstance(notice, ZonalShift):
            self._keep(notice, decision.reason)
            self._shift(notice)
        self.telemetry.count(Metric.NOTICES_IGNORED)
        self.telemetry.log("notice acknowledged", kind=notice.kind, because=decision.reason)

    def _echo(self, canary: Canary) -> None:
        """Count the schedule's canary, and write any other's word down for whoever waits for it.

        A failure is logged: it is not worth a retry.
        """
        if canary.word == self.sources.canary_word:
            self.telemetry.count(Metric.CANARIES_SEEN)
            return
        echo = canary_echo(canary, seen=self.clock.now())
        try:
            if echo is not None:
                self.reports.merge(echo)
        except PlimsollError as error:
            self.telemetry.warn("canary not written down", because=str(error))

    def _shift(self, shift: ZonalShift) -> None:
        """Write down which zone clusters are shifted away from, or back to, and wake their drains.

        Raises:
            PlimsollError: this failed for a cluster; it was tried for all.
        """
        failed: PlimsollError | None = None
        for cluster in self.registry.list() if shift.zone_id else ():
            account = cluster.account or self.sources.account
            here = shift.region in {None, cluster.region} and account in {None, shift.account}
            if not (here and shift.is_about(cluster.name)):
                continue
            try:
                self._shift_of(cluster, shift)
            except PlimsollError as error:
                failed = error
        if failed is not None:
            raise failed

    def _shift_of(self, cluster: Cluster, shift: ZonalShift) -> None:
        zone = self.instances_of(cluster).zones().get(shift.zone_id or "")
        if zone is None:
            self.telemetry.warn("zone not known", cluster=cluster.name, zone=shift.zone_id)
            return
        self.pools.put_shift(cluster.place, ShiftEvent.of(shift, cluster.name, zone))
        if cluster.mode is Mode.ACT and not self.kill_switch:
            self.wake_ups.send(cluster.name, SLOW_WAKE_UPS)

    def _keep(self, shift: ZonalShift, reason: str) -> None:
        if self.sources.account not in {None, shift.account}:
            reason += f", in the account {shift.account}"
        self.reports.merge(shift_report(shift, reason))

    def _foresee(self, cluster: Cluster, api: ClusterApi, found: Sequence[LocatedNotice]) -> None:
        try:
            self.dry_run.report(cluster, api, found, self.reports)
        except Permanent as error:  # nothing depends on a dry run
            self.telemetry.warn("dry run failed", cluster=cluster.name, because=str(error))

    def _say(self, batch: Sequence[LocatedNotice], cordoned: Cordoned) -> None:
        if not cordoned.written:
            return
        node, now = cordoned.interruption.node, self.clock.now()
        waits = cordoned.interruption.cordoned is None
        self.telemetry.log(
            "acted",
            action="record" if waits else "cordon",
            target=f"Node {node}",
            because=batch[0].decision.reason,
            nodes=[node],
        )
        for located in () if waits else batch:
            age = (now - located.notice.time).total_seconds()
            self.telemetry.count(Metric.NOTICE_AGE_AT_CORDON, max(0.0, age))
