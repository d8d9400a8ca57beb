"""Every minute, for every cluster: makes up for lost events.

Wakes clusters in which something can be done, finds interrupted instances of which no event told,
keeps the node index, and closes the reports of nodes that are no more. Neither a cluster that cannot
be reached nor a step that fails, as without DynamoDB or EC2, stops the rest.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from functools import partial
from typing import Final

from plimsoll.domain.clusters import Cluster, IndexEntry, Mode
from plimsoll.domain.drain import plan_drain
from plimsoll.domain.errors import PlimsollError, Temporary
from plimsoll.domain.interruptions import actionable
from plimsoll.domain.metrics import Metric
from plimsoll.domain.names import INSTANCE_TYPE
from plimsoll.domain.nodes import Node
from plimsoll.domain.notices import InstanceNotice, StateChange
from plimsoll.domain.notices.state_change import GONE
from plimsoll.domain.observation import Observation
from plimsoll.domain.reports import Report
from plimsoll.services.cordons import Located
from plimsoll.services.delivery import SLOW_WAKE_UPS
from plimsoll.services.notices import NoticeService
from plimsoll.services.ports import (
    Clock,
    ClusterApi,
    Clusters,
    Instances,
    NodeGroups,
    NodeIndex,
    Registry,
    Reports,
    Telemetry,
    WakeUps,
    Workers,
)

REFRESH: Final = timedelta(minutes=10)
"""How often an entry of the index that says the same is written again: it expires after days."""
UNSEEN: Final = timedelta(minutes=2)
"""How long a node must be missing before its report is closed: an observation may be older than a node."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ResyncService:
    """Resyncs all registered clusters."""

    registry: Registry
    index: NodeIndex
    instances: Instances
    clusters: Clusters
    groups: Callable[[Cluster], NodeGroups]
    reports: Reports
    notices: NoticeService
    wake_ups: WakeUps
    clock: Clock
    workers: Workers
    telemetry: Telemetry
    kill_switch: bool = False

    def run(self) -> int:
        """Resync every cluster once; return how many interruptions are open.

        Raises:
            Temporary: a cluster could not be resynced; the others were.
        """
        clusters = self.registry.list()
        answers = self.workers.run([partial(self._resync, cluster) for cluster in clusters])
        total, failed = 0, []
        for cluster, answer in zip(clusters, answers, strict=True):
            match answer:
                case int():
                    total += answer
                case PlimsollError():
                    failed.append(cluster.name)
                    self.telemetry.warn(
                        "cluster not resynced", cluster=cluster.name, because=str(answer)
                    )
                case Exception():
                    raise answer
        self.telemetry.count(Metric.OPEN_INTERRUPTIONS, total)
        if failed:
            raise Temporary(f"not resynced: {', '.join(failed)}")
        return total

    def _resync(self, cluster: Cluster) -> int:
        """Wake a cluster, then make up for what was lost. A step that fails stops none of the others.

        Raises:
            Temporary: steps failed; all others were taken.
        """
        now = self.clock.now()
        api = self.clusters.open(cluster)
        seen = api.observe()
        failed: list[str] = []

        def tried[T](step: Callable[[], T], otherwise: T) -> T:
            try:
                return step()
            except PlimsollError as error:
                failed.append(str(error))
                return otherwise

        tried(partial(self._wake, cluster, seen, now), None)
        ids = [n.instance for n in seen.nodes if n.instance is not None]
        known: Mapping[str, IndexEntry] = tried(lambda: self.index.find(ids), {})
        entries: Sequence[IndexEntry] = tried(lambda: self._entries(cluster, seen, known, now), [])
        tried(partial(self._find_silent, cluster, api, seen, entries), None)
        tried(partial(self.index.put, [e for e in entries if not _fresh(known, e)]), None)
        tried(partial(self._close_reports, cluster, seen, now), None)
        if failed:
            raise Temporary("; ".join(failed))
        return sum(n.interruption is not None for n in seen.nodes)

    def _wake(self, cluster: Cluster, seen: Observation, now: datetime) -> None:
        """Wake the drain of a cluster in which something can be done now.

        Node groups are read only where pods wait, since then more of them may be asked for.
        """
        if self.kill_switch or cluster.mode is not Mode.ACT:
            return
        plan = plan_drain(seen, now)
        if plan.waiting and not (plan.steps or plan.busy):
            groups = self.groups(cluster).list(seen.nodes)
            plan = plan_drain(seen.among(groups=groups), now)
        if plan.steps or plan.busy:
            self.wake_ups.send(cluster.name, SLOW_WAKE_UPS)

    def _entries(
        self,
        cluster: Cluster,
        seen: Observation,
        known: Mapping[str, IndexEntry],
        now: datetime,
    ) -> Sequence[IndexEntry]:
        """Return what the index should say of all nodes; EC2 is asked for those it does not know."""
        nodes = [(n, n.instance) for n in seen.nodes if n.instance is not None]
        fresh = [i for _, i in nodes if i not in known or known[i].launched is None]
        said = self.instances.describe(fresh) if fresh else {}
        entries = []
        for node, instance in nodes:
            launched = said[instance].launched if instance in said else None
            if launched is None and instance in known:
                launched = known[instance].launched
            entries.append(
                IndexEntry(
                    instance=instance,
                    cluster=cluster.name,
                    node=node.name,
                    launched=launched,
                    zone=node.zone,
                    instance_type=node.labels.get(INSTANCE_TYPE),
                    seen=now,
                )
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
        nodes = {n.instance: n for n in seen.nodes if n.instance is not None}
        entry = {e.instance: e for e in entries}
        found = [
            Located(
                notice=notice,
                decision=actionable(notice),
                entry=entry[notice.instance],
                node=nodes[notice.instance],
            )
            for notice in self.instances.interrupted(list(nodes))
            if notice.instance in entry and not _told(notice, nodes[notice.instance])
        ]
        found = [located for located in found if located.decision.merges]
        if found:
            self.telemetry.count(Metric.NOTICES_FOUND_BY_RESYNC, len(found))
            for error in self.notices.deliver(cluster, api, found).values():
                raise error

    def _close_reports(self, cluster: Cluster, seen: Observation, now: datetime) -> None:
        here = {n.interruption.identity for n in seen.nodes if n.interruption is not None}
        nodes = {n.name for n in seen.nodes}
        for report in self._open_reports(cluster):
            over = report.noticed + UNSEEN < now and report.node not in nodes
            if over and report.interruption not in here:
                self.telemetry.count(Metric.PODS_KILLED, len(report.killed))
                self.reports.merge(replace(report, gone=report.gone or now, closed=now))

    def _open_reports(self, cluster: Cluster) -> Sequence[Report]:
        return [r for r in self.reports.list(cluster.name) if r.closed is None]


def _fresh(known: Mapping[str, IndexEntry], entry: IndexEntry) -> bool:
    """Whether the index says the same, and not long ago."""
    old = known.get(entry.instance)
    return (
        old is not None
        and entry.seen - old.seen < REFRESH
        and replace(old, seen=entry.seen) == entry
    )


def _told(notice: InstanceNotice, node: Node) -> bool:
    """Whether the node's record has a notice of this kind already, under whatever id."""
    record = node.interruption
    if record is None:
        return False
    if isinstance(notice, StateChange) and notice.state in GONE:
        return record.gone is not None
    return any(known.kind == notice.kind for known in record.standing)
