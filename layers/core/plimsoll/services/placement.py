"""Placement, on a schedule: labels and deletion costs follow the floors, and pods the spread groups."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

from plimsoll.domain.actions import Release
from plimsoll.domain.clusters import Cluster, Mode
from plimsoll.domain.errors import PlimsollError, Temporary
from plimsoll.domain.placement import PlacementPlan, plan_placement
from plimsoll.domain.plan import Plan
from plimsoll.domain.writers import Writers
from plimsoll.services.delivery import SLOW_WAKE_UPS
from plimsoll.services.executor import Executor
from plimsoll.services.ports import (
    Clock,
    Clusters,
    NodeGroups,
    Registry,
    Telemetry,
    WakeUps,
    Workers,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class PlacementService:
    """Plans the placement of all registered clusters, and carries the plans out."""

    registry: Registry
    clusters: Clusters
    groups: Callable[[Cluster], NodeGroups]
    wake_ups: WakeUps
    clock: Clock
    workers: Workers
    cluster_workers: Workers
    telemetry: Telemetry
    kill_switch: bool = False

    def run(self) -> int:
        """Place every cluster once; return how many actions were planned.

        Raises:
            Temporary: a cluster could not be placed; the others were.
        """
        clusters = self.registry.list()
        answers = self.cluster_workers.run([partial(self.place, cluster) for cluster in clusters])
        total, failed = 0, []
        for cluster, answer in zip(clusters, answers, strict=True):
            match answer:
                case PlacementPlan():
                    total += len(answer.steps)
                case PlimsollError():
                    failed.append(cluster.name)
                    self.telemetry.warn(
                        "cluster not placed", cluster=cluster.name, because=str(answer)
                    )
                case Exception():
                    raise answer
        if failed:
            raise Temporary(f"not placed: {', '.join(failed)}")
        return total

    def place(self, cluster: Cluster) -> PlacementPlan:
        """Plan one cluster, and carry the plan out where writes are allowed.

        It holds no Lease: its writes are patches under a resourceVersion, safe beside others. The
        pods that it releases are evicted by the drain, which a wake-up starts.
        """
        api = self.clusters.open(cluster)
        plan = plan_placement(api.observe(), self.clock.now(), namespaces=api.namespace_floors())
        for problem in plan.problems:
            self.telemetry.warn("floor not understood", cluster=cluster.name, because=problem)
        if self.kill_switch or cluster.mode is not Mode.ACT:
            for step in plan.steps:
                self.telemetry.log("would place", cluster=cluster.name, step=str(step))
            return plan
        executor = Executor(
            writers=Writers(cluster=api, capacity=self.groups(cluster)),
            workers=self.workers,
            telemetry=self.telemetry,
        )
        outcomes = executor.carry_out(Plan(steps=plan.steps))
        if any(o.done and isinstance(o.action, Release) for o in outcomes):
            self.wake_ups.send(cluster.name, SLOW_WAKE_UPS)
        return plan
