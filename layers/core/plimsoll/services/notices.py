"""What happens to a notice: whose is it, cordon the node at once, wake the drain.

A batch is handled as one: one look-up for all its instances, the cordons side by side, one series
of wake-ups for each cluster; those that are acted on come before those that are only observed. Everything may be repeated: a notice that stands in the record already
writes nothing, but wakes the drain again, for whoever handled it before may have died in between.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING

from plimsoll.domain.errors import Discardable, NotFound, Permanent, PlimsollError, Temporary
from plimsoll.domain.interruptions import LifecycleHook
from plimsoll.domain.kubernetes import ClusterEvent, event_of_cordon
from plimsoll.domain.node_groups import is_our_hook
from plimsoll.domain.notices import (
    HOOK_TIMEOUT,
    SCHEDULED_CANARY,
    About,
    Canary,
    Decision,
    InstanceNotice,
    LifecycleTerminate,
    Notice,
    ZonalShift,
    parse,
)
from plimsoll.domain.registry import Cluster, Mode
from plimsoll.domain.reports import Metric, canary_echo
from plimsoll.domain.spot import KIND_OF_NOTICE, SPOT, CapacityPool, PoolEvent
from plimsoll.services.cluster_events import create_events
from plimsoll.services.instance_locator import InstanceLocator, LocatedNotice, located
from plimsoll.services.node_cordon import Cordoned, cordon, find_nodes, heeded, only_observed
from plimsoll.services.ports import (
    Clock,
    ClusterApi,
    Clusters,
    NodeGroups,
    Pools,
    RegisteredClusters,
    Reports,
    Span,
    Telemetry,
    Traces,
    WakeUps,
    Workers,
)
from plimsoll.services.taint_confirmation import TaintConfirmation
from plimsoll.services.trusted_sources import TrustedSources
from plimsoll.services.untraced import UNTRACED
from plimsoll.services.wake_up_series import WakeUpSeries
from plimsoll.services.zonal_shifts import ZonalShiftService

if TYPE_CHECKING:
    from plimsoll.services.dry_run import DryRun


@dataclass(frozen=True, slots=True, kw_only=True)
class NoticeService:
    """Handles notices."""

    locator: InstanceLocator
    confirmation: TaintConfirmation
    registry: RegisteredClusters
    clusters: Clusters
    groups: Callable[[Cluster], NodeGroups]
    dry_run: Callable[[], DryRun]
    """Returns it for a cluster that is only observed: it imports the plan of a drain."""
    reports: Reports
    pools: Pools
    wake_ups: WakeUps
    series: WakeUpSeries
    zonal_shifts: ZonalShiftService
    clock: Clock
    workers: Workers
    telemetry: Telemetry
    traces: Traces
    sources: TrustedSources

    def receive(self, bodies: Sequence[str]) -> Sequence[Exception | None]:
        """Handle a batch and return, in order, why each body was not (wholly) handled; else None.

        Handling a body again never hurts. What is `Discardable` is counted and logged here, and so handled.
        """
        # EC2's answer replaces each taint before anything else: Plimsoll never acts on an agent's word.
        read = self.confirmation.of([self._read(body) for body in bodies])
        failed: dict[Notice, Exception] = {}
        draining: list[InstanceNotice] = []
        for notice in (
            n for notices in read if not isinstance(notices, Exception) for n in notices
        ):
            decision = notice.decision
            if isinstance(notice, About) and decision.merges:
                draining.append(notice)
                continue
            try:
                self._acknowledge(notice, decision)
            except PlimsollError as error:
                failed[notice] = error
        by_cluster, elsewhere = located(draining, self.locator.of)
        # What is not ours, in words, the locator has counted and logged.
        failed |= {n: error for n, error in elsewhere.items() if isinstance(error, Exception)}
        clusters: list[tuple[Cluster, Sequence[LocatedNotice]]] = []
        for name, found in sorted(by_cluster.items()):
            try:
                cluster = self.registry.get(name)
            except PlimsollError as error:
                failed |= dict.fromkeys((each.notice for each in found), error)
                continue
            ours = [each for each in found if self._is_of(cluster, each.notice)]
            if len(ours) < len(found):
                self.telemetry.count(Metric.NOTICES_NOT_OURS, len(found) - len(ours))
            if cluster is not None and ours:
                clusters.append((cluster, ours))
        # False sorts before True, so clusters in the mode act come
        # first. The sort is stable and keeps the order by name.
        for cluster, found in sorted(clusters, key=lambda item: item[0].mode is not Mode.ACT):
            try:
                with self.spans(cluster, found) as traced:
                    failed |= self.deliver(cluster, self.clusters.open(cluster), traced)
            except PlimsollError as error:
                failed |= dict.fromkeys((each.notice for each in found), error)
        # A body comes back as a whole if one of its notices failed. The others change nothing the second time.
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
        observed = only_observed(cluster, found)
        kept = heeded(cluster, found)
        self._count_ignored(cluster, len(found) - len(observed) - len(kept))
        if cluster.mode is not Mode.ACT:
            self._report(cluster, api, kept)
            self._remember(cluster, kept)
            return self._report_observed(cluster, api, observed)
        # All nodes are cordoned before the first wake-up: an earlier reconcile would find nothing to do.
        batches = find_nodes(api, kept, self.workers)
        answers = self.workers.run([partial(cordon, api, batch, self.clock) for batch in batches])
        failed: dict[Notice, Exception] = {}
        urgent: list[bool] = []
        events: list[ClusterEvent] = []
        for (batch, node), answer in zip(batches, answers, strict=True):
            match answer:
                case Cordoned():
                    advised = answer.interruption.on_advice(self.clock.now())
                    urgent.append(answer.interruption.deadline is not None and not advised)
                    self._say(batch, answer)
                    if answer.written and answer.interruption.cordoned is not None:
                        events.append(event_of_cordon(answer.interruption, answer.reason))
                case str() as reason:
                    self.telemetry.log("notice leads to nothing", because=reason)
                    failed |= dict(self._complete_hooks(cluster, () if node else batch))
                case Exception() as why:
                    failed |= dict.fromkeys((each.notice for each in batch), why)
        if not urgent and any(isinstance(error, Temporary) for error in failed.values()):
            # It asks for capacity where the cluster is away.
            self.wake_ups.send(cluster.name, (0,), kept[0].span.traceparent)
        # Also for a notice that stood on the node already: the
        # invocation that wrote it may have died before the wake-ups.
        if urgent:
            self._wake(cluster, kept, urgent=any(urgent))
        # After the wake-ups: those decide when pods move, and Events only inform people.
        create_events(api, events, self.workers, self.telemetry)
        self._remember(cluster, kept)
        # Last: the dry run lists the whole cluster, and no cordon may wait for that.
        return _noted(found, failed | self._report_observed(cluster, api, observed))

    @contextmanager
    def spans(
        self, cluster: Cluster, found: Sequence[LocatedNotice]
    ) -> Iterator[Sequence[LocatedNotice]]:
        """Give the notices each a span that lasts as long as the block."""
        with ExitStack() as stack:
            yield [
                replace(each, span=stack.enter_context(self._span(cluster, each.notice)))
                for each in found
            ]

    def _span(self, cluster: Cluster, notice: InstanceNotice) -> Span:
        """Begin the span of a notice, within that of its event, which lasts from when AWS says it happened until now."""
        now = self.clock.now()
        facts = {
            "cluster": cluster.name,
            "instance": notice.instance,
            "kind": notice.kind,
            "notice": notice.id,
        }
        with self.traces.begin("event", at=min(notice.time, now), **facts) as event:
            return event.child("notice", **facts)

    def _wake(self, cluster: Cluster, found: Sequence[LocatedNotice], *, urgent: bool) -> None:
        with found[0].span.child("wake-up", cluster=cluster.name) as span:
            span.link(each.span.traceparent for each in found[1:])
            self.series.send(cluster.name, urgent=urgent, traceparent=span.traceparent)

    def _count_ignored(self, cluster: Cluster, ignored: int) -> None:
        if ignored:
            self.telemetry.count(Metric.NOTICES_IGNORED, ignored)
            self.telemetry.log("notices ignored", cluster=cluster.name, policy=str(cluster.policy))

    def _report(self, cluster: Cluster, api: ClusterApi, found: Sequence[LocatedNotice]) -> None:
        """Report what would be done. Nothing depends on it."""
        try:
            untraced = [replace(each, span=UNTRACED) for each in found]  # nothing is cordoned
            self.dry_run().report(cluster, api, untraced, self.reports)
        except Permanent as error:
            self.telemetry.warn("dry run failed", cluster=cluster.name, because=str(error))

    def _report_observed(
        self, cluster: Cluster, api: ClusterApi, observed: Sequence[LocatedNotice]
    ) -> dict[Notice, Exception]:
        """Report what would be done about notices that the policy only observes; return why some have to come again."""
        if not observed:
            return {}
        as_if = replace(cluster, policy=cluster.policy.carried_out())
        try:
            self._report(as_if, api, observed)
        except Temporary as error:
            return dict.fromkeys((each.notice for each in observed), error)
        return {}

    def _complete_hooks(
        self, cluster: Cluster, batch: Sequence[LocatedNotice]
    ) -> Iterator[tuple[Notice, Temporary]]:
        """Let an instance without a Node wait for no hook of ours; yield the notices that must come back."""
        for notice in (each.notice for each in batch):
            if not isinstance(notice, LifecycleTerminate):
                continue
            if not is_our_hook(notice.hook, notice.metadata):
                continue
            hook = LifecycleHook(
                group=notice.group,
                name=notice.hook,
                timeout=HOOK_TIMEOUT,
                longest=HOOK_TIMEOUT,
                ours=True,
            )
            about = {"target": notice.instance, "because": "it has no Node to drain"}
            try:
                self.groups(cluster).complete_lifecycle(hook, notice.instance)
            except NotFound:
                continue  # the action is over
            except Temporary as error:
                yield notice, error
            except PlimsollError as error:
                self.telemetry.warn("hook not completed", **about | {"because": str(error)})
            else:
                self.telemetry.log("acted", action="complete", **about)

    def _remember(self, cluster: Cluster, found: Sequence[LocatedNotice]) -> None:
        """Write down which capacity pools are reclaimed. No notice comes back for that."""
        events = [
            PoolEvent(pool=CapacityPool(of_type, zone, SPOT), kind=kind, at=each.notice.time)
            for each in found
            if (kind := KIND_OF_NOTICE.get(each.notice.kind))
            and (of_type := each.entry.instance_type)
            and (zone := each.entry.zone)
        ]
        try:
            self.pools.put(cluster.place, events)
        except PlimsollError as error:
            self.telemetry.warn("capacity pools not written", because=str(error))

    def _read(self, body: str) -> tuple[Notice, ...] | Exception:
        try:
            return parse(
                body,
                received=self.clock.now(),
                drills=self.sources.drills,
                region=self.sources.region,
            )
        except Discardable as error:
            self.telemetry.count(Metric.NOTICES_IGNORED)
            self.telemetry.warn("notice refused", because=str(error))
            return ()
        except PlimsollError as error:
            return error

    def _is_of(self, cluster: Cluster | None, notice: InstanceNotice) -> bool:
        """Whether a notice comes from where the cluster is: an instance's id alone proves nothing."""
        if cluster is None:
            return False
        here = self.sources.has_sent(notice, cluster)
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
            self.zonal_shifts.hear(notice)
        self.telemetry.count(Metric.NOTICES_IGNORED)
        self.telemetry.log("notice acknowledged", kind=notice.kind, because=decision.reason)

    def _echo(self, canary: Canary) -> None:
        """Count the schedule's canary, and write down the name of a person's. Those of others leave no trace.

        A failure is logged: it is not worth a retry.
        """
        now = self.clock.now()
        try:
            name = self.sources.canary_name(canary, now)
            if name == SCHEDULED_CANARY:
                self.telemetry.count(Metric.CANARIES_SEEN)
            elif name is not None:
                self.reports.merge(canary_echo(canary, name, seen=now))
        except PlimsollError as error:
            self.telemetry.warn("canary not acknowledged", because=str(error))

    def _say(self, batch: Sequence[LocatedNotice], cordoned: Cordoned) -> None:
        if not cordoned.written:
            return
        node, now = cordoned.interruption.node, self.clock.now()
        waits = cordoned.interruption.cordoned is None
        self.telemetry.log(
            "acted",
            action="record" if waits else "cordon",
            target=f"Node {node}",
            because=cordoned.reason,
            nodes=[node],
        )
        for each in () if waits else batch:
            age = (now - each.notice.time).total_seconds()
            self.telemetry.count(Metric.NOTICE_AGE_AT_CORDON, max(0.0, age))


def _noted(
    found: Sequence[LocatedNotice], failed: Mapping[Notice, Exception]
) -> Mapping[Notice, Exception]:
    """Note in the spans of notices why they failed."""
    for each in found:
        if (error := failed.get(each.notice)) is not None:
            each.span.fail(error)
    return failed
