"""Placement, on a schedule: labels and deletion costs follow the floors, and pods the spread groups."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from functools import partial
from zlib import crc32

from plimsoll.domain.actions import Plan, Release
from plimsoll.domain.capacity import StartWindows
from plimsoll.domain.disruptions import plan_guard
from plimsoll.domain.errors import Conflict, NotFound, PlimsollError
from plimsoll.domain.kubernetes import (
    NAMESPACE,
    ClusterEvent,
    about_namespace,
    namespace_floors,
    namespace_guards,
    namespace_promises,
)
from plimsoll.domain.observation import Observation, start_samples
from plimsoll.domain.placement import (
    ALL_SPOT,
    Asked,
    PlacementPlan,
    asked_promises,
    floors_by_stop_time,
    plan_placement,
    report_of,
    words_of,
)
from plimsoll.domain.registry import Cluster, Mode, labelled
from plimsoll.domain.reports import Metric
from plimsoll.domain.spot import counted_hours
from plimsoll.services.collector import collector_paused
from plimsoll.services.executor import Executor, Writers
from plimsoll.services.injection import Proof, Proven, injection_of
from plimsoll.services.layouts import Layouts
from plimsoll.services.node_launches import with_launches
from plimsoll.services.observed_times import ObservedTimes
from plimsoll.services.ports import (
    Clock,
    ClusterApi,
    Clusters,
    LayoutStore,
    NodeGroups,
    NodeIndex,
    Pools,
    RegisteredClusters,
    Reports,
    Telemetry,
    WakeUps,
    Workers,
)
from plimsoll.services.promise_scores import PromiseScores
from plimsoll.services.resync import ResyncService
from plimsoll.services.retry_policy import SLOW_WAKE_UPS
from plimsoll.services.spot_return import SpotReturns


@dataclass(frozen=True, slots=True, kw_only=True)
class PlacementService:
    """Plans the placement of all registered clusters, and carries the plans out."""

    registry: RegisteredClusters
    cluster_workers: Workers
    clusters: Clusters
    groups: Callable[[Cluster], NodeGroups]
    resync: ResyncService
    index: NodeIndex
    reports: Reports
    pools: Pools
    observed_times: ObservedTimes
    layouts: Callable[[], LayoutStore]
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
        namespaces = api.namespaces()
        guard = plan_guard(seen, namespace_guards(namespaces))
        injection, found = injection_of(api)
        asked = asked_promises(seen, namespace_promises(namespaces), namespace_floors(namespaces))
        if asked.hinge_on_starts(seen):
            seen = with_launches(seen, self.groups(cluster), self.index, self.telemetry)
        seen = with_stop_times(self.observed_times, cluster, seen, asked, now)
        windows = StartWindows(seen=seen, now=now)
        chosen = self._layouts.choose(cluster, asked, windows, injection.told)
        spot_return = self._returns.of(cluster, asked.promises.keys(), now)
        with collector_paused():
            plan = plan_placement(
                seen,
                now,
                namespaces=asked.floors,
                injection=injection,
                chosen=chosen,
                spot_return=spot_return,
            )
        grows = self._returns.grows(cluster, seen, plan.homeless, spot_return, now)
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
        self._returns.report(cluster, outcomes, now)
        scores = PromiseScores(reports=self.reports, telemetry=self.telemetry)
        scores.add(cluster.name, seen, chosen.promised, now)
        return plan

    @property
    def _returns(self) -> SpotReturns:
        return SpotReturns(
            groups=self.groups,
            pools=self.pools,
            reports=self.reports,
            telemetry=self.telemetry,
        )

    @property
    def _layouts(self) -> Layouts:
        return Layouts(
            store=self.layouts(),
            pools=self.pools,
            workers=self.workers,
            telemetry=self.telemetry,
        )

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
    observed: ObservedTimes, cluster: Cluster, seen: Observation, asked: Asked, now: datetime
) -> Observation:
    """Return an observation with the observed times of the workloads whose floor or layout hinges on them."""
    hinging = floors_by_stop_time(StartWindows(seen=seen, now=now), asked.floors)
    looked_up = {*hinging, *asked.turn(now)}
    times = observed.of(cluster.name, looked_up) if looked_up else None
    return replace(seen, times=times) if times else seen
