"""Leaves a cluster as it was found: observe, plan, put back, until nothing of ours is left."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Final

from plimsoll.domain.errors import Permanent, Temporary
from plimsoll.domain.registry import Cluster, Mode
from plimsoll.services.executor import ActionResult, Executor, Writers
from plimsoll.services.lease import Lease
from plimsoll.services.ports import (
    ClusterApi,
    Clusters,
    NodeGroups,
    Registry,
    RepeatingClock,
    Telemetry,
    Workers,
)
from plimsoll_cli.cluster.uninstall_plan import UninstallPlan, plan_uninstall

PAUSE_SECONDS: Final = 1.0
"""Between two looks, and between two tries for the Lease."""


@dataclass(frozen=True, slots=True, kw_only=True)
class UninstallResult:
    """What came of leaving."""

    outcomes: tuple[ActionResult, ...]
    left: UninstallPlan
    """What the last look found that is still to do."""


@dataclass(frozen=True, slots=True, kw_only=True)
class UninstallService:
    """Puts back what is changed in a cluster."""

    registry: Registry
    clusters: Clusters
    groups: Callable[[Cluster], NodeGroups]
    clock: RepeatingClock
    workers: Workers
    telemetry: Telemetry

    def look(self, cluster: Cluster) -> UninstallPlan:
        """Return what there is to do, and write nothing.

        Raises:
            PlimsollError: the cluster cannot be read.
        """
        return plan_uninstall(self.clusters.open(cluster).observe(), self.clock.now())

    def put_back(self, cluster: Cluster, holder: str, seconds: float) -> UninstallResult:
        """Set the cluster to observe, wait for a reconcile that is at work, and put everything back.

        From the first step on the functions write no more there, whatever comes of the rest.

        Args:
            cluster: a registered cluster.
            holder: who we are, for the Lease.
            seconds: how long to go on while counts cannot go back yet.

        Raises:
            Temporary: a reconcile held the Lease all the time, or the cluster cannot be reached.
            MissingRights: there is no right to the Lease.
        """
        # The mode first, then the Lease: no new reconcile begins, and the present one has to end.
        self.registry.update(replace(cluster, mode=Mode.OBSERVE))
        api = self.clusters.open(cluster)
        until = self.clock.now() + timedelta(seconds=seconds)
        lease = Lease(api=api, clock=self.clock, cluster=cluster.name, holder=holder)
        while not lease.take():
            if self.clock.now() >= until:
                raise Temporary(
                    f"another drain holds the Lease in {cluster.name}: try again in a minute"
                )
            self.clock.sleep(PAUSE_SECONDS)
        with lease.kept():
            return self._work(cluster, api, lease, until)

    def _work(
        self, cluster: Cluster, api: ClusterApi, lease: Lease, until: datetime
    ) -> UninstallResult:
        executor = Executor(
            writers=Writers(cluster=api, capacity=self.groups(cluster)),
            workers=self.workers,
            telemetry=self.telemetry,
        )
        done: list[ActionResult] = []
        while True:
            # Observed again in each round: one undone change makes others possible.
            left = plan_uninstall(api.observe(), self.clock.now())
            outcomes = executor.carry_out(left.plan, held=lambda: lease.held)
            lease.require()
            done += outcomes
            idle = not outcomes
            if idle or _hopeless(outcomes) or self.clock.now() >= until:
                return UninstallResult(outcomes=tuple(done), left=left)
            self.clock.sleep(PAUSE_SECONDS)


def _hopeless(outcomes: Sequence[ActionResult]) -> bool:
    """Whether something was refused that would be refused again."""
    return any(isinstance(outcome.error, Permanent) for outcome in outcomes)
