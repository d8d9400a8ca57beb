"""Placement, on a schedule: labels and deletion costs follow the floors, and pods the spread groups."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from functools import partial
from zlib import crc32

from plimsoll.domain.actions import Grow, Plan, Release, Step
from plimsoll.domain.capacity import StartWindows
from plimsoll.domain.disruptions import plan_guard
from plimsoll.domain.drain import added_entry, added_since, report_of_added
from plimsoll.domain.errors import Conflict, NotFound, PlimsollError
from plimsoll.domain.kubernetes import NAMESPACE, ClusterEvent, Pod, about_namespace
from plimsoll.domain.observation import Observation, start_samples
from plimsoll.domain.placement import (
    ADDED_WITHIN,
    ALL_SPOT,
    PlacementPlan,
    SpotReturn,
    floors_by_stop_time,
    growth_for_return,
    plan_placement,
    report_of,
    words_of,
)
from plimsoll.domain.registry import Cluster, Mode, labelled
from plimsoll.domain.reports import Metric
from plimsoll.domain.spot import counted_hours, hours_stood
from plimsoll.services.executor import Executor, Writers
from plimsoll.services.injection import Proof, Proven, injection_of
from plimsoll.services.observed_times import ObservedTimes
from plimsoll.services.ports import (
    Clock,
    ClusterApi,
    Clusters,
    NodeGroups,
    Pools,
    RegisteredClusters,
    Reports,
    Telemetry,
    WakeUps,
    Workers,
)
from plimsoll.services.resync import ResyncService
from plimsoll.services.retry_policy import SLOW_WAKE_UPS


@dataclass(frozen=True, slots=True, kw_only=True)
class PlacementService:
    """Plans the placement of all registered clusters, and carries the plans out."""

    registry: RegisteredClusters
    cluster_workers: Workers
    clusters: Clusters
    groups: Callable[[Cluster], NodeGroups]
    resync: ResyncService
    reports: Reports
    pools: Pools
    observed_times: ObservedTimes
    wake_ups: WakeUps
    clock: Clock
    workers: Workers
    telemetry: Telemetry

    def run(self) -> int:
        """Place every cluster once, side by side; return how many actions were planned.

        A cluster that cannot be placed is counted, as one that cannot be resynced; it hides no other.

        Raises:
            Exception: whatever is no error of ours by type.
        """
        clusters = list(labelled(self.registry.list()))
        answers = self.cluster_workers.run([partial(self._run, *each) for each in clusters])
        total = failed = 0
        for (cluster, label), answer in zip(clusters, answers, strict=True):
            match answer:
                case int():
                    total += answer
                case PlimsollError():
                    failed += 1
                    self.telemetry.count(Metric.CLUSTERS_NOT_RESYNCED, cluster=label)
                    because = str(answer)
                    self.telemetry.warn("cluster not placed", cluster=cluster.name, because=because)
                case Exception():
                    raise answer
        self.telemetry.count(Metric.CLUSTERS_NOT_RESYNCED, failed)
        return total

    def _run(self, cluster: Cluster, label: str) -> int:
        """Place a cluster.

        From the same observation the resync takes pods, and start times and the hours of capacity pools are remembered.
        """
        api = self.clusters.open(cluster)
        seen = api.observe()
        plan = self.place(cluster, api, seen)
        for loss in plan.reserve:
            if loss.kind == ALL_SPOT:
                self.telemetry.count(Metric.ON_DEMAND_RESERVE, 100 * loss.covered, cluster=label)
        # The resync uses the same observation: pods are listed once for both.
        self.resync.complete(cluster, label, api, seen)
        self.observed_times.remember(cluster.name, start_samples(seen.of_workload))
        self._count_hours(cluster, seen)
        return len(plan.steps)

    def place(self, cluster: Cluster, api: ClusterApi, seen: Observation) -> PlacementPlan:
        """Plan one cluster, and carry the plan out where writes are allowed.

        It holds no Lease: its writes are patches under a resourceVersion, safe beside others. The
        pods that it releases are evicted by the drain, which a wake-up starts.
        """
        now = self.clock.now()
        seen = replace(seen, policy=cluster.policy)
        guard = plan_guard(seen, api.guarded_namespaces())
        injection, found = injection_of(api)
        namespaces = api.namespace_floors()
        seen = with_stop_times(self.observed_times, cluster, seen, namespaces, now)
        spot_return = self._spot_return(cluster, now)
        plan = plan_placement(
            seen, now, namespaces=namespaces, injection=injection, spot_return=spot_return
        )
        grows = self._grows(cluster, seen, plan.homeless, spot_return, now)
        plan = replace(plan, steps=(*plan.steps, *grows, *guard.steps))
        if found is not None and found.proof is not Proof.IN_FORCE:
            self.telemetry.warn(found.proof, cluster=cluster.name, because=found.why)
        for problem in plan.problems:
            self.telemetry.warn("floor cannot stand", cluster=cluster.name, because=problem)
        if cluster.mode is not Mode.ACT:
            for step in plan.steps:
                self.telemetry.log("would place", cluster=cluster.name, step=str(step))
            self._report(cluster, [f"would {step}" for step in plan.steps], now)
            return plan
        executor = Executor(
            writers=Writers(cluster=api, capacity=self.groups(cluster)),
            workers=self.workers,
            telemetry=self.telemetry,
        )
        if found is not None and found.proof in {Proof.BROKEN, Proof.STALE}:
            # The binding is removed before any move: each move creates
            # a pod, which a broken policy would refuse or change.
            executor.note(self._remove_injection(cluster, api, found))
        outcomes = executor.carry_out(Plan(steps=plan.steps))
        # After the releases: the drain evicts a released pod once its replacement is Ready.
        if any(o.done and isinstance(o.action, Release) for o in outcomes):
            self.wake_ups.send(cluster.name, SLOW_WAKE_UPS)
        # In an order that the time decides: the many of one tenant do not keep others from being told.
        for event in sorted(plan.events, key=lambda e: crc32(f"{now}{e.name}".encode())):
            executor.note(event)
        executor.create_events()
        self._report(cluster, words_of((o.action for o in outcomes if o.done), now), now)
        for outcome in outcomes:
            match outcome.action:
                case Grow() as grow if outcome.done:
                    self._report_added(cluster, grow, outcome.promised, now)
        return plan

    def _spot_return(self, cluster: Cluster, now: datetime) -> SpotReturn:
        """Return what the way back to spot is decided by; nothing returns to pools that are not known."""
        if not cluster.policy.return_to_spot:
            return SpotReturn()
        try:
            return SpotReturn(hours_stood=hours_stood(self.pools.memory(cluster.place, now), now))
        except PlimsollError as error:
            self.telemetry.warn("capacity pools not read", because=str(error))
            return SpotReturn()

    def _grows(
        self,
        cluster: Cluster,
        seen: Observation,
        homeless: Sequence[Pod],
        spot_return: SpotReturn,
        now: datetime,
    ) -> Sequence[Step]:
        """Return what spot groups are asked for; groups and reports are read only where a pod has no place."""
        if not homeless:
            return ()
        try:
            groups = self.groups(cluster).list(seen.nodes)
            added = added_since(self.reports.list(cluster.name), now - ADDED_WITHIN)
        except PlimsollError as error:
            self.telemetry.warn("no spot node is asked for", because=str(error))
            return ()
        grows = growth_for_return(seen.among(groups=groups), homeless, spot_return, added, now)
        return [Step(action=grow, nodes=frozenset()) for grow in grows]

    def _report_added(self, cluster: Cluster, grow: Grow, promised: int, now: datetime) -> None:
        """Keep how many nodes were added: a group may take them back, and no more are asked for than that allows."""
        added = added_entry(grow.group, promised, now, grow.token)
        try:
            self.reports.merge(report_of_added(cluster.name, added, grow.reason, now))
        except PlimsollError as error:
            self.telemetry.warn("added nodes not reported", because=str(error))

    def _count_hours(self, cluster: Cluster, seen: Observation) -> None:
        """Count this hour of the spot pools that nodes stand in, unless another cluster of the region did."""
        try:
            counts = counted_hours(self.pools.held(cluster.place), seen.nodes, self.clock.now())
        except PlimsollError as error:
            self.telemetry.warn("hours of capacity pools not read", because=str(error))
            return
        for answer in self.workers.run(
            [partial(self.pools.count, cluster.place, before, after) for before, after in counts]
        ):
            match answer:
                case Conflict() | None:
                    continue
                case PlimsollError():
                    self.telemetry.warn("hours of capacity pools not written", because=str(answer))
                case Exception():
                    raise answer

    def _report(self, cluster: Cluster, done: Sequence[str], now: datetime) -> None:
        """Keep what was done, if anything was: a run in steady state writes nothing."""
        if not done:
            return
        try:
            self.reports.merge(report_of(cluster.name, done, now))
        except PlimsollError as error:
            self.telemetry.warn("placement not reported", cluster=cluster.name, because=str(error))

    def _remove_injection(
        self, cluster: Cluster, api: ClusterApi, found: Proven
    ) -> ClusterEvent | None:
        """Unbind the admission policy where it does harm, and return the Event that tells it."""
        try:
            api.remove_injection()
        except NotFound:
            return None
        except PlimsollError as error:
            self.telemetry.warn("injection not removed", cluster=cluster.name, because=str(error))
            return None
        self.telemetry.warn("injection removed", cluster=cluster.name)
        self.telemetry.count(Metric.INJECTIONS_REMOVED)
        return about_namespace(NAMESPACE, "InjectionRemoved", f"{found.proof}: {found.why}")


def with_stop_times(
    observed: ObservedTimes,
    cluster: Cluster,
    seen: Observation,
    namespaces: Mapping[str, str],
    now: datetime,
) -> Observation:
    """Return an observation with the observed times of the workloads whose on-demand floor hinges on them."""
    asked = floors_by_stop_time(StartWindows(seen=seen, now=now), namespaces)
    times = observed.of(cluster.name, asked) if asked else None
    return replace(seen, times=times) if times else seen
