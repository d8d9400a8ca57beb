"""Every hour, for every cluster: what would be short in a storm, and whether the admission policies of our group hold.

It keeps nothing, in whatever mode a cluster is: policies are tried by dry runs.

People are told when the answer changes, and not again while it stands: the newest report of its kind
keeps what was told. They are told before it is kept, so that a run that dies tells twice rather than never.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator
from dataclasses import dataclass

from plimsoll.domain.capacity import (
    Short,
    Shortfall,
    images_of,
    preflight_announcement,
    preflight_answer,
    preflight_report,
    preflights_of,
    short_of_addresses,
    short_of_maxima,
    short_of_quota,
    short_of_taints,
    short_of_templates,
    short_of_time_to_start,
    spot_loss,
    subnets_of,
)
from plimsoll.domain.errors import PlimsollError
from plimsoll.domain.registry import Cluster, ResyncRequest
from plimsoll.domain.reports import Metric
from plimsoll.services.ports import (
    Announcer,
    Clock,
    Clusters,
    Limits,
    NodeGroups,
    RegisteredClusters,
    Reports,
    Telemetry,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class PreflightService:
    """Compares one cluster at a time."""

    registry: RegisteredClusters
    clusters: Clusters
    groups: Callable[[Cluster], NodeGroups]
    limits: Callable[[Cluster], Limits]
    policies_missing: Callable[[Cluster], Collection[str]]
    reports: Reports
    announcer: Announcer
    clock: Clock
    telemetry: Telemetry

    def run(self, request: ResyncRequest) -> None:
        """Compare a cluster, and tell what changed; one that cannot be read is asked again in an hour."""
        try:
            cluster = self.registry.get(request.cluster)
            if cluster is not None and not request.is_late(self.clock.now()):
                self._run(cluster, request.label)
        except PlimsollError as error:
            self.telemetry.warn("no pre-flight", cluster=request.cluster, because=str(error))

    def _run(self, cluster: Cluster, label: str) -> None:
        self._try_policies(cluster, label)
        now = self.clock.now()
        unread = set[Short]()
        found = list(self._shortfalls(cluster, unread))
        last = self.reports.list(preflights_of(cluster.name), 1)
        before = last[0].refused if last else {}
        # A check that could not be read keeps its last answer: it neither rings again nor counts as cured.
        short = preflight_answer(found, before, unread)
        capacity = sum(key.rpartition(": ")[2] != Short.TOLERATIONS for key in short)
        self.telemetry.count(Metric.CAPACITY_SHORT, capacity)
        if capacity:
            self.telemetry.count(Metric.CAPACITY_SHORT, capacity, cluster=label)
        if short.keys() == before.keys():
            return
        self.announcer.tell(*preflight_announcement(cluster.name, short, before))
        self.reports.merge(preflight_report(cluster.name, short, now))

    def _try_policies(self, cluster: Cluster, label: str) -> None:
        """Count the policies that are missing. Without them a thief of our role may change any field."""
        try:
            missing = self.policies_missing(cluster)
        except PlimsollError as error:
            self.telemetry.warn("policies not tried", cluster=cluster.name, because=str(error))
            return
        self.telemetry.count(Metric.POLICIES_MISSING, len(missing))
        if missing:
            self.telemetry.count(Metric.POLICIES_MISSING, len(missing), cluster=label)
            policies = ", ".join(missing)
            self.telemetry.warn("policies missing", cluster=cluster.name, policies=policies)

    def _shortfalls(self, cluster: Cluster, unread: set[Short]) -> Iterator[Shortfall]:
        """Yield what is short; what cannot be read is noted, and hides nothing else."""
        seen = self.clusters.open(cluster).observe()
        groups = self.groups(cluster).list(seen.nodes)
        loss = spot_loss(seen.nodes, seen.pods)
        limits = self.limits(cluster)
        yield from short_of_maxima(loss, groups)
        yield from short_of_time_to_start(seen.among(groups=groups), self.clock.now())
        yield from short_of_taints(seen)
        subnets, images = subnets_of(groups), images_of(groups)
        checks: dict[Short, Callable[[], Iterable[Shortfall]]] = {
            Short.QUOTA: lambda: short_of_quota(loss, limits.quota()),
            Short.ADDRESSES: lambda: short_of_addresses(
                loss, groups, limits.free_addresses(subnets)
            ),
            Short.TEMPLATE: lambda: short_of_templates(groups, limits.images(images)),
        }
        for short, check in checks.items():
            try:
                yield from check()
            except PlimsollError as error:
                unread.add(short)
                because = str(error)
                self.telemetry.warn(
                    "not compared", cluster=cluster.name, short=short, because=because
                )
