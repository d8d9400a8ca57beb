"""Every minute, for every cluster: makes up for lost events.

Keeps the node index, finds interrupted instances of which no event told, wakes clusters that have
something open, and closes the reports of nodes that are no more. One cluster that cannot be reached
does not keep the others from being resynced.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
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
from plimsoll.services.delivery import CALM_WAKE_UPS
from plimsoll.services.notices import NoticeService
from plimsoll.services.ports import (
    Clock,
    ClusterApi,
    Clusters,
    Instances,
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
"""How long a node must be missing before its report is closed: a look may be older than a node."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ResyncService:
    """Resyncs all registered clusters."""

    registry: Registry
    index: NodeIndex
    instances: Instances
    clusters: Clusters
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
        now = self.clock.now()
        api = self.clusters.open(cluster)
        seen = api.observe()
        entries = self._keep_index(cluster, seen, now)
        self._find_silent(cluster, api, seen, entries)
        self._close_reports(cluster, seen, now)
        writing = cluster.mode is Mode.ACT and not self.kill_switch
        plan = plan_drain(seen, now)
        if writing and (plan.steps or plan.busy):
            self.wake_ups.send(cluster.name, CALM_WAKE_UPS)
        return sum(n.interruption is not None for n in seen.nodes)

    def _keep_index(
        self, cluster: Cluster, seen: Observation, now: datetime
    ) -> Sequence[IndexEntry]:
        """Write what the index does not know yet; return the entries of all nodes."""
        nodes = [(n, n.instance) for n in seen.nodes if n.instance is not None]
        known = self.index.find([i for _, i in nodes])
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
        self.index.put([entry for entry in entries if not _fresh(known, entry)])
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
            if notice.instance in nodes and not _told(notice, nodes[notice.instance])
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
