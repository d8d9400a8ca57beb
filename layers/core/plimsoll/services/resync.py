"""Every minute, for every cluster: makes up for lost events.

Wakes clusters in which something can be done, finds interrupted instances of which no event told,
keeps the node index, and closes the reports of nodes that are no more. Each cluster has a message, and
so an invocation, of its own: a large or broken one delays no other. A step that fails, as without
DynamoDB or EC2, stops none of the others.

In calm times it lists the Nodes only. What needs the pods is done with each observation of the
placement run, and by the resync itself where that run stopped.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from functools import partial
from typing import Final

from plimsoll.domain.actions import Uncordon
from plimsoll.domain.capacity import estimated_node
from plimsoll.domain.drain import plan_drain, reports_wanted
from plimsoll.domain.errors import NotFound, PlimsollError, Temporary
from plimsoll.domain.interruptions import waits_for_hooks
from plimsoll.domain.kubernetes import Node
from plimsoll.domain.node_groups import Instance, NodeGroup
from plimsoll.domain.notices import GONE, Effect, InstanceNotice, StateChange
from plimsoll.domain.observation import (
    Observation,
    by_instance,
    entries_of,
    resynced_lately,
    to_describe,
    to_write,
    why_drained,
    witnesses,
)
from plimsoll.domain.placement import keeps_spread_groups, waits_for_spread_group
from plimsoll.domain.registry import Cluster, IndexEntry, Mode, ResyncRequest, resync_requests
from plimsoll.domain.reports import Metric, Report, announcement, interruption_metrics
from plimsoll.domain.zones import has_shift_taint, shifted_zones
from plimsoll.services.instance_locator import LocatedNotice
from plimsoll.services.node_cordon import heeded
from plimsoll.services.notices import NoticeService
from plimsoll.services.ports import (
    Announcer,
    Clock,
    ClusterApi,
    Clusters,
    Instances,
    NodeGroups,
    NodeIndex,
    Pools,
    RegisteredClusters,
    Reports,
    Resyncs,
    Telemetry,
    WakeUps,
)
from plimsoll.services.retry_policy import SLOW_WAKE_UPS

UNSEEN: Final = timedelta(minutes=2)
"""How long a node must be missing before its report is closed: an observation may be older than a node."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ResyncService:
    """Resyncs one cluster at a time."""

    registry: RegisteredClusters
    index: NodeIndex
    instances_of: Callable[[Cluster], Instances]
    clusters: Clusters
    groups: Callable[[Cluster], NodeGroups]
    reports: Reports
    pools: Pools
    announcer: Announcer
    notices: NoticeService
    wake_ups: WakeUps
    clock: Clock
    telemetry: Telemetry

    def run(self, request: ResyncRequest) -> int:
        """Resync a cluster; return how many interruptions were found open.

        One that fails is counted and not tried again, and one that comes too late is only counted: the
        next request is at most a minute away.
        """
        try:
            if request.is_late(self.clock.now()):
                raise Temporary("its message came after the next one was sent")
            cluster = self.registry.get(request.cluster)
            found = 0 if cluster is None else self._resync(cluster, request.label)
        except PlimsollError as error:
            for label in (None, request.label):
                self.telemetry.count(Metric.CLUSTERS_NOT_RESYNCED, cluster=label)
            self.telemetry.warn("cluster not resynced", cluster=request.cluster, because=str(error))
            return 0
        self.telemetry.count(Metric.RESYNC_FINISHED)
        self.telemetry.count(Metric.OPEN_INTERRUPTIONS, found)
        if found:
            self.telemetry.count(Metric.OPEN_INTERRUPTIONS, found, cluster=request.label)
        return found

    def _resync(self, cluster: Cluster, label: str) -> int:
        api = self.clusters.open(cluster)
        # Nodes only at first: in calm times nothing justifies a list of pods.
        nodes = api.nodes()
        if self._calm(cluster, nodes) and not self._kept_waiting(api, nodes):
            return sum(node.interruption is not None for node in nodes)
        return self.complete(cluster, label, api, api.observe())

    def _calm(self, cluster: Cluster, nodes: Sequence[Node]) -> bool:
        """Whether no node is interrupted, except by changes scheduled for later, and a full resync ran lately.

        EC2 is asked for interruptions that no event reported, and the node index when the last one ran.
        When one of them cannot be asked, the answer is no: the full resync isolates each of its steps.
        """
        now = self.clock.now()
        ours = by_instance(nodes)
        open_now = (node.interruption for node in nodes if node.interruption is not None)
        if not ours or not all(cluster.policy.postpones(found, now) for found in open_now):
            return False
        # Checked before EC2 and the index, because it costs no call.
        if any(why_drained(node, cluster.policy) or has_shift_taint(node) for node in nodes):
            return False
        asked = witnesses(ours, now)
        try:
            told = [
                notice
                for notice in self.instances_of(cluster).interrupted(list(ours))
                if _begins(notice, cluster) and not _told(notice, ours[notice.instance])
            ]
            known = self.index.find(asked)
        except PlimsollError:
            return False
        return not told and resynced_lately(asked, known, cluster.name, now)

    def _kept_waiting(self, api: ClusterApi, nodes: Sequence[Node]) -> bool:
        """Whether a pod waits for a spread group, which the next placement run may only open in minutes."""
        now = self.clock.now()
        return any(map(keeps_spread_groups, nodes)) and any(
            waits_for_spread_group(pod, now) for pod in api.unbound_pods()
        )

    def complete(self, cluster: Cluster, label: str, api: ClusterApi, observed: Observation) -> int:
        """Wake the drain, then make up for lost notices; return how many interruptions are open.

        A step that fails stops none of the others.

        Args:
            cluster: the cluster, as the registry knows it.
            label: the cluster's name in metrics.
            api: the cluster's API.
            observed: all objects of the cluster, read just now.

        Raises:
            Temporary: steps failed; all others were taken.
        """
        now = self.clock.now()
        seen = replace(observed, policy=cluster.policy)
        if seen.left_out:
            self.telemetry.count(Metric.OBJECTS_LEFT_OUT, len(seen.left_out))
        failed: list[str] = []

        def tried[T](step: Callable[[], T], otherwise: T) -> T:
            try:
                return step()
            except PlimsollError as error:
                failed.append(str(error))
                return otherwise

        if wanted := reports_wanted(seen):
            reports = tried(partial(self.reports.list, cluster.name, wanted), None)
            seen = replace(seen, reports=reports)
        shifts = tried(lambda: self.pools.shifts(cluster.place, now), None)
        if shifts is not None:
            seen = replace(seen, shifts=shifted_zones(shifts, cluster.name, now))
        # The drain is woken before EC2 and the index are asked:
        # it rarely needs them, and both may be slow in a storm.
        woken = tried(partial(self._wake, cluster, seen, now), otherwise=False)
        ours = by_instance(seen.nodes)
        known: Mapping[str, IndexEntry] = tried(lambda: self.index.find(list(ours)), {})
        asked = to_describe(seen, known, now)
        said: Mapping[str, Instance] | None = tried(
            lambda: self.instances_of(cluster).describe(asked) if asked else {}, None
        )
        if said and not woken:  # only EC2 knows which nodes run again
            tried(partial(self._wake, cluster, seen.among(instances=said), now), otherwise=False)
        # Without an answer from EC2 no entry is written: a Node's own claim to an instance proves nothing.
        entries = [] if said is None else self._entries(seen, known, said, now)
        tried(partial(self._find_silent, cluster, api, seen, entries), None)
        tried(partial(self.index.put, to_write(entries, known, ours)), None)
        tried(partial(self._close_reports, cluster, label, seen, now), None)
        if failed:
            raise Temporary("; ".join(failed))
        return sum(n.interruption is not None for n in seen.nodes)

    def _wake(self, cluster: Cluster, seen: Observation, now: datetime) -> bool:
        """Wake the drain of a cluster in which something can be done now; return whether it was.

        Node groups are read only where pods wait, since then more of them may be asked for, and where
        hooks hold an instance, since heartbeats keep them up. A plan that only uncordons has to know
        them too: what a group replaces is not uncordoned for a pod that waits.
        """
        if cluster.mode is not Mode.ACT:
            return False
        plan = plan_drain(seen, now)
        held = any(
            n.interruption is not None and waits_for_hooks(n.interruption) for n in seen.nodes
        )
        uncordons = plan.steps and all(isinstance(action, Uncordon) for action in plan.actions)
        if uncordons or ((plan.waiting or held) and not plan.busy):
            groups = self._groups(cluster, seen, needed=not plan.busy)
            plan = plan_drain(seen.among(groups=groups, instances=seen.instances), now)
        if not plan.busy:
            return False
        self.wake_ups.send(cluster.name, SLOW_WAKE_UPS)
        return True

    def _groups(self, cluster: Cluster, seen: Observation, *, needed: bool) -> Sequence[NodeGroup]:
        """Read the node groups. A drain uncordons without them, so what uncordons needs none."""
        try:
            return self.groups(cluster).list(seen.nodes)
        except PlimsollError as error:
            if needed:
                raise
            self.telemetry.warn("node groups not read", because=str(error))
            return ()

    def _entries(
        self,
        seen: Observation,
        known: Mapping[str, IndexEntry],
        said: Mapping[str, Instance],
        now: datetime,
    ) -> Sequence[IndexEntry]:
        """Return what the index should say, and tell of Nodes that claim what is not theirs."""
        entries, claims = entries_of(seen, known, said, now)
        for claim in claims:
            self.telemetry.warn(
                "a Node claims an instance of another cluster",
                cluster=seen.cluster,
                node=claim.node,
                instance=claim.instance,
                of=claim.of,
            )
        return entries

    def _find_silent(
        self,
        cluster: Cluster,
        api: ClusterApi,
        seen: Observation,
        entries: Sequence[IndexEntry],
    ) -> None:
        """Handle what no event told: the same path as an event's, so it merges with a late one."""
        entry = {e.instance: e for e in entries}
        listed = by_instance(seen.nodes)
        unknown = [
            notice
            for notice in self.instances_of(cluster).interrupted(list(listed))
            if notice.instance in entry and not _told(notice, listed[notice.instance])
        ]
        # In a storm events are handled meanwhile, and what was listed is half a minute old.
        nodes = by_instance(api.nodes()) if unknown else {}
        found = [
            LocatedNotice.of(notice, entry[notice.instance], node)
            for notice in unknown
            if (node := nodes.get(notice.instance)) is not None and not _told(notice, node)
        ]
        merging = heeded(cluster, [located for located in found if located.decision.merges])
        if merging:
            self.telemetry.count(Metric.NOTICES_FOUND_BY_RESYNC, len(merging))
            with self.notices.spans(cluster, merging) as traced:
                failed = self.notices.deliver(cluster, api, traced)
            for error in failed.values():
                raise error

    def _close_reports(
        self, cluster: Cluster, label: str, seen: Observation, now: datetime
    ) -> None:
        here = {n.interruption.identity for n in seen.nodes if n.interruption is not None}
        nodes = {n.name for n in seen.nodes}
        over = [
            report
            for report in self.reports.list(cluster.name)
            if report.closed is None
            and report.noticed + UNSEEN < now
            and report.node not in nodes
            and report.interruption not in here
        ]
        left = {each.interruption.partition("@")[0] for each in over if each.gone is None}
        # Before the reports are closed: a closed report is not looked at
        # again, and the instance would wait until the hook times out.
        self._complete_hooks(cluster, left - by_instance(seen.nodes).keys())
        closed: list[Report] = []
        try:
            for report in over:
                # Closed before the announcement: of several resyncs, the one with the earliest
                # `closed` announces. If it dies in between, nobody is told, but the report is kept.
                merged = self.reports.merge(replace(report, gone=report.gone or now, closed=now))
                if merged.closed == now:  # else another resync of the cluster was first, and tells
                    closed.append(merged)
                    self.telemetry.count(Metric.PODS_KILLED, len(merged.killed))
        finally:  # also where a later report could not be closed: the next resync finds only those that are open
            for metric, value in interruption_metrics(closed).items():
                self.telemetry.count(metric, value, cluster=label)
            if closed:
                self._announce(cluster, closed)

    def _complete_hooks(self, cluster: Cluster, instances: Collection[str]) -> None:
        """Let instances whose Nodes were deleted meanwhile wait for no hook of ours: their pods ended with the Nodes.

        Raises:
            Temporary: AWS or the index does not answer; the reports stay open until they do.
        """
        if not instances or cluster.mode is not Mode.ACT:
            return
        entries = self.index.find(sorted(instances)).values()
        groups = self.groups(cluster)
        try:
            hooks = [
                (hook, instance)
                for group in groups.list([estimated_node(entry) for entry in entries])
                for hook in group.hooks
                for instance in sorted(group.waiting & {*instances})
                if hook.ours
            ]
            for hook, instance in hooks:
                with suppress(NotFound):  # the action is over
                    groups.complete_lifecycle(hook, instance)
                    because = "its Node was deleted"
                    self.telemetry.log("acted", action="complete", target=instance, because=because)
        except Temporary:
            raise
        except PlimsollError as error:
            self.telemetry.warn("hooks not completed", cluster=cluster.name, because=str(error))

    def _announce(self, cluster: Cluster, closed: Sequence[Report]) -> None:
        """Tell people what the interruptions cost. The reports are kept, whether anybody hears."""
        try:
            self.announcer.tell(*announcement(cluster.name, closed))
        except PlimsollError as error:
            self.telemetry.warn("reports not announced", because=str(error))


@dataclass(frozen=True, slots=True, kw_only=True)
class ResyncSchedule:
    """Asks for the resync of each registered cluster and the zonal shifts of each place, by a message for each."""

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


def _begins(notice: InstanceNotice, cluster: Cluster) -> bool:
    """Whether a notice would interrupt a node that has no record."""
    effect = notice.decision.effect
    heeds = cluster.policy.of_kind(notice.kind).writes
    return effect is Effect.GONE or (effect is Effect.DRAIN and heeds)


def _told(notice: InstanceNotice, node: Node) -> bool:
    """Whether the node's record has a notice of this kind already, under whatever id."""
    record = node.interruption
    if record is None:
        return False
    if isinstance(notice, StateChange) and notice.state in GONE:
        return record.gone is not None
    return any(known.kind == notice.kind for known in record.standing)
