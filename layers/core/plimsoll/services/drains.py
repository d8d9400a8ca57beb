"""One reconcile of the drain of a cluster: observe, plan, act, and again until its time is over.

A reconcile knows nothing that the cluster does not tell it, so killing one loses seconds only. The
cluster's Lease keeps two reconciles from doing the same work: see `plimsoll.services.lease`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

from plimsoll.domain.actions import Grow, Release
from plimsoll.domain.clusters import Cluster, Mode
from plimsoll.domain.drain import plan_drain
from plimsoll.domain.errors import BadInput, Refused, Temporary
from plimsoll.domain.groups import NodeGroup
from plimsoll.domain.nodes import Node
from plimsoll.domain.observation import Observation
from plimsoll.domain.plan import Plan
from plimsoll.domain.reports import Report
from plimsoll.domain.writers import Writers
from plimsoll.services.delivery import RECONCILE_SECONDS
from plimsoll.services.executor import Executor, Outcome, requested_pause
from plimsoll.services.lease import LEASE_SECONDS, Lease
from plimsoll.services.ports import (
    Clock,
    ClusterApi,
    Clusters,
    Instances,
    NodeGroups,
    Registry,
    Reports,
    Telemetry,
    Workers,
)
from plimsoll.services.reconcile_memory import ReconcileMemory

FIRST_LEASE_SECONDS: Final = 20.0
"""How long the Lease lasts during the first observation. How long that takes nobody knows: of thousands of
pods, at an API server that is hard pressed, it took more than ten seconds, and reconciles took the
Lease from each other without one of them ever acting."""
OBSERVATIONS: Final = 3.0
"""The Lease lasts for as many observations as the last one, where that is longer than usual."""
PAUSE_SECONDS: Final = 1.0
"""Between two observations: a replacement that is Ready is seen within this time."""
AVOID: Final = timedelta(minutes=3)
"""How long a node group that refused is not asked again."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DrainService:
    """Carries the open interruptions of clusters on."""

    registry: Registry
    clusters: Clusters
    groups: Callable[[Cluster], NodeGroups]
    instances: Instances
    reports: Reports
    clock: Clock
    workers: Workers
    telemetry: Telemetry
    kill_switch: bool = False

    def reconcile(self, cluster: str, holder: str, seconds: float = RECONCILE_SECONDS) -> int:
        """Work on one cluster for at most `seconds`; return how often it was observed.

        Ends at once where another reconcile is at work, and early where nothing is left to do.

        Args:
            cluster: its registered name; one that was removed meanwhile is nothing to do.
            holder: who we are, for the Lease: different for every invocation.
            seconds: the time for work; ending needs about two seconds more.

        Raises:
            Temporary: the cluster cannot be reached now; another wake-up will try.
        """
        known = self.registry.get(cluster)
        if known is None:
            self.telemetry.warn("wake-up for a cluster that is not registered", cluster=cluster)
            return 0
        if self.kill_switch or known.mode is not Mode.ACT:
            self.telemetry.log("wake-up of a cluster that is only observed", cluster=cluster)
            return 0
        api = self.clusters.open(known)
        lease = Lease(api=api, cluster=cluster, holder=holder, seconds=FIRST_LEASE_SECONDS)
        if not lease.take():
            self.telemetry.log("another reconcile is at work", cluster=cluster)
            return 0
        with lease:
            return self._work(known, api, lease, self.clock.now() + timedelta(seconds=seconds))

    def _work(self, cluster: Cluster, api: ClusterApi, lease: Lease, until: datetime) -> int:
        groups = self.groups(cluster)
        executor = Executor(
            writers=Writers(cluster=api, capacity=groups),
            workers=self.workers,
            telemetry=self.telemetry,
        )
        memory = ReconcileMemory()
        observations = 0
        try:
            while True:
                began = self.clock.now()
                lease.renew()
                plan = self._plan(api, groups, memory)
                observations += 1
                spent = (self.clock.now() - began).total_seconds()
                lease.seconds = max(LEASE_SECONDS, OBSERVATIONS * spent)
                outcomes = executor.carry_out(
                    plan, between=lease.renew, enough=lambda: self.clock.now() >= until
                )
                self._learn(memory, outcomes)
                self._save(memory.news())
                pause = self._pause(began, plan, outcomes)
                over = self.clock.now() + timedelta(seconds=pause) >= until
                if over or not plan.busy:
                    return observations
                self.clock.sleep(pause)
        finally:
            self._save(list(memory.reports.values()))

    def _pause(self, began: datetime, plan: Plan, outcomes: Sequence[Outcome]) -> float:
        """Return the seconds until the next observation: less where a pod has to be told before it.

        Never less than the last one took, so that half of the time the API server is left alone.
        """
        now = self.clock.now()
        spent = (now - began).total_seconds()
        pause = max(PAUSE_SECONDS, requested_pause(outcomes))
        if plan.next_call is not None:
            pause = min(pause, (plan.next_call - now).total_seconds())
        return max(spent, pause)

    def _plan(self, api: ClusterApi, groups: NodeGroups, memory: ReconcileMemory) -> Plan:
        seen = api.observe()
        gone, ended_by_owner = self._ended(seen, memory)
        fresh = memory.groups is None  # also when they could not be read the last time
        while True:
            if fresh:
                memory.groups = self._read_groups(groups, seen.nodes)
            now, read = self.clock.now(), memory.groups or ()
            plan = plan_drain(
                seen.among(groups=read, gone=gone, ended_by_owner=ended_by_owner),
                now,
                avoid=memory.avoid,
                refused=memory.refused,
            )
            if fresh or not any(isinstance(action, Grow) for action in plan.actions):
                break
            fresh = True  # somebody else may have asked since: look again before asking for more
        memory.learn(plan.reports)
        return plan

    def _read_groups(self, groups: NodeGroups, nodes: Sequence[Node]) -> Sequence[NodeGroup] | None:
        """Read the node groups. Without them pods still move to what room there is."""
        try:
            return groups.list(nodes)
        except (Temporary, Refused, BadInput) as error:
            self.telemetry.warn("node groups not read", because=str(error))
            return None

    def _ended(
        self, seen: Observation, memory: ReconcileMemory
    ) -> tuple[frozenset[str], frozenset[str]]:
        """Ask EC2 which instances are gone, and which their owner ended: of nodes past their deadline.

        Only its own word counts: an instance that it does not know may live in another region, and
        pods of an instance that is gone are deleted without a grace period.
        """
        past = [
            node.instance
            for node in seen.nodes
            if node.instance is not None
            and node.interruption is not None
            and (node.interruption.gone is None or node.instance not in memory.ended)
            and (not node.ready or _past(node.interruption.deadline, self.clock.now()))
        ]
        try:
            memory.ended |= self.instances.describe(past) if past else {}
        except Temporary as error:
            self.telemetry.warn("instances not read", because=str(error))
        ended = memory.ended.items()
        return (
            frozenset(i for i, said in ended if said.state == "terminated"),
            frozenset(i for i, said in ended if said.interrupted and said.ended_by_owner),
        )

    def _learn(self, memory: ReconcileMemory, outcomes: Sequence[Outcome]) -> None:
        for outcome in outcomes:
            refused = isinstance(outcome.error, Refused | BadInput)
            match outcome.action:
                case Grow(group=group, zone=zone):
                    memory.groups = None
                    if refused:
                        memory.avoid[group.name, zone] = self.clock.now() + AVOID
                case Release(owner=owner) if refused:
                    memory.refused[owner] = f"its release was refused: {outcome.error}"

    def _save(self, reports: Sequence[Report]) -> None:
        """Write reports. A drain does not wait for a database: what fails is only logged."""
        answers = self.workers.run([lambda r=r: self.reports.merge(r) for r in reports])  # type: ignore[misc]  # mypy cannot infer a lambda with a default
        for report, answer in zip(reports, answers, strict=True):
            if isinstance(answer, Exception):
                self.telemetry.warn(
                    "report not written", interruption=report.interruption, because=str(answer)
                )


def _past(deadline: datetime | None, now: datetime) -> bool:
    return deadline is not None and deadline <= now
