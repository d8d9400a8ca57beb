"""One reconcile of the drain of a cluster: observe, plan, act, and again until its time is over.

A reconcile knows nothing that the cluster does not tell it, so killing one loses seconds only. The
cluster's Lease keeps two reconciles from doing the same work: see `plimsoll.services.lease`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Final, Self

from plimsoll.domain.actions import (
    Evict,
    Exclude,
    Grow,
    LabelNode,
    Release,
    TaintNode,
    TerminateInstance,
    UndoRelease,
    Unguard,
)
from plimsoll.domain.added_nodes import added, reports_wanted
from plimsoll.domain.capacity_pools import CapacityPool
from plimsoll.domain.cluster_events import of_report
from plimsoll.domain.clusters import Cluster, Instance, Mode
from plimsoll.domain.drain import plan_drain
from plimsoll.domain.errors import BadInput, PlimsollError, Refused, Temporary, Throttled
from plimsoll.domain.groups import NodeGroup
from plimsoll.domain.interruptions import NEAR
from plimsoll.domain.nodes import Node
from plimsoll.domain.observation import Observation
from plimsoll.domain.placement.report import report_of, words_of
from plimsoll.domain.plan import Plan
from plimsoll.domain.pool_memory import risks
from plimsoll.domain.replace.pace import begins
from plimsoll.domain.replace.throughput import SAMPLE
from plimsoll.domain.reports import Report
from plimsoll.domain.shift_events import ShiftedZone, shifted_zones
from plimsoll.domain.turns import MOVES
from plimsoll.domain.writers import Writers
from plimsoll.services.delivery import HURRIED_SECONDS, MAX_PAUSE_SECONDS, RECONCILE_SECONDS
from plimsoll.services.executor import Executor, Outcome, requested_pause
from plimsoll.services.lease import Lease, LeaseLost
from plimsoll.services.node_sums import NodeSums
from plimsoll.services.ports import (
    ClusterApi,
    Clusters,
    Instances,
    NodeGroups,
    Pools,
    Registry,
    RepeatingClock,
    Reports,
    Telemetry,
    WakeUps,
    Workers,
)
from plimsoll.services.reconcile_memory import ReconcileMemory

PAUSE_SECONDS: Final = 1.0
"""Between two observations: a replacement that is Ready is seen within this time."""
UNANSWERED: Final = timedelta(seconds=5)
"""How long a cluster may leave a reconcile without an answer until capacity is asked for all the same."""
TELLING: Final = timedelta(seconds=3)
"""How late Events are begun still: one that gets no answer takes seven seconds of the function's time."""


@dataclass(frozen=True, slots=True)
class _TimeLimit:
    """When a reconcile has to end."""

    usual: datetime
    hurried: datetime

    @classmethod
    def of(cls, now: datetime, seconds: float, hurried: float) -> Self:
        return cls(now + timedelta(seconds=seconds), now + timedelta(seconds=hurried))

    def ends(self, plan: Plan) -> datetime:
        return self.hurried if plan.hurried else self.usual


@dataclass(frozen=True, slots=True, kw_only=True)
class DrainService:
    """Carries the open interruptions of clusters on."""

    registry: Registry
    clusters: Clusters
    groups: Callable[[Cluster], NodeGroups]
    instances_of: Callable[[Cluster], Instances]
    node_sums: NodeSums
    reports: Reports
    pools: Pools
    wake_ups: WakeUps
    clock: RepeatingClock
    workers: Workers
    telemetry: Telemetry
    kill_switch: bool = False

    def reconcile(
        self,
        cluster: str,
        holder: str,
        seconds: float = RECONCILE_SECONDS,
        hurried: float = HURRIED_SECONDS,
    ) -> int:
        """Work on one cluster; return how often it was observed.

        Ends at once where another reconcile is at work, and early where nothing is left to do. Where
        something is left when the time is over, it wakes the cluster once more.

        Args:
            cluster: its registered name; one that was removed meanwhile is nothing to do.
            holder: who we are, for the Lease: different for every invocation.
            seconds: the time for work; ending needs about two seconds more.
            hurried: the same while a plan is hurried.

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
        with self.clusters.open(known).following() as api:
            return self._reconcile(
                known, api, holder, _TimeLimit.of(self.clock.now(), seconds, hurried)
            )

    def _reconcile(self, known: Cluster, api: ClusterApi, holder: str, time: _TimeLimit) -> int:
        cluster, groups = known.name, self.groups(known)
        executor = Executor(
            writers=Writers(cluster=api, capacity=groups),
            workers=self.workers,
            telemetry=self.telemetry,
        )
        lease = Lease(api=api, clock=self.clock, cluster=cluster, holder=holder)
        if not self._take(lease, time.usual, lambda: self._grow_unseen(known, groups, executor)):
            self.telemetry.log("another reconcile is at work", cluster=cluster)
            return 0
        memory = ReconcileMemory()
        try:
            with lease.kept():
                observations, left = self._work(known, api, groups, executor, lease, time, memory)
            if left is not None:
                self._wake_next(cluster, left)
            return observations
        finally:  # the Lease is free again: no drain waits for a database
            for report in self._save(list(memory.reports.values())):
                executor.note(of_report(report))
            if self.clock.now() < time.hurried + TELLING:
                executor.create_events()
            self._remember(known, memory)

    def _wake_next(self, cluster: str, pause: float) -> None:
        """Wake the drain for what is left: the next wake-up of the series may be too late for a last call.

        Only who had the Lease until its time was over does so, and one that finds a live Lease ends at
        once, so however many series and copies there are, one reconcile follows another.
        """
        try:
            self.wake_ups.send(cluster, [min(int(pause), MAX_PAUSE_SECONDS)])
        except PlimsollError as error:
            self.telemetry.warn("next wake-up not sent", cluster=cluster, because=str(error))

    def _take(self, lease: Lease, until: datetime, unanswered: Callable[[], None]) -> bool:
        """Take the Lease as soon as the cluster answers; `unanswered` is called once if it is late.

        Raises:
            Temporary: it has not answered until the end.
        """
        late = self.clock.now() + UNANSWERED
        called = False
        while True:
            try:
                return lease.take()
            except Temporary as error:
                if not called and self.clock.now() >= late:
                    called = True
                    unanswered()
                pause = max(PAUSE_SECONDS, error.retry_after or 0.0)
                if self.clock.now() + timedelta(seconds=pause) >= until:
                    raise
                self.clock.sleep(pause)

    def _grow_unseen(self, cluster: Cluster, groups: NodeGroups, executor: Executor) -> None:
        """Ask for capacity by the node index: new nodes start while the API server is away."""
        try:
            plan = self.node_sums.plan(cluster, groups)
        except PlimsollError as error:
            self.telemetry.warn("capacity not planned by the node index", because=str(error))
            return
        executor.carry_out(plan)

    def _work(  # noqa: PLR0913, PLR0917 - what one reconcile works with
        self,
        cluster: Cluster,
        api: ClusterApi,
        groups: NodeGroups,
        executor: Executor,
        lease: Lease,
        time: _TimeLimit,
        memory: ReconcileMemory,
    ) -> tuple[int, float | None]:
        """Return how often the cluster was observed, and in how many seconds it is to be again, if it is."""
        observations, until = 0, time.usual
        while True:
            try:
                pause, until = self._once(cluster, api, groups, executor, lease, time, memory)
            except LeaseLost:
                raise
            except Temporary as error:
                # Another reconcile would first have to wait until the Lease expires.
                pause = max(PAUSE_SECONDS, error.retry_after or 0.0)
                if self.clock.now() + timedelta(seconds=pause) >= until:
                    raise
                self.telemetry.warn("observation failed", cluster=cluster.name, because=str(error))
            else:
                observations += 1
                over = self.clock.now() + timedelta(seconds=pause or 0.0) >= until
                if pause is None or over:
                    return observations, pause
            self.clock.sleep(pause)

    def _once(  # noqa: PLR0913, PLR0917 - what one reconcile works with
        self,
        cluster: Cluster,
        api: ClusterApi,
        groups: NodeGroups,
        executor: Executor,
        lease: Lease,
        time: _TimeLimit,
        memory: ReconcileMemory,
    ) -> tuple[float | None, datetime]:
        """Observe, plan and act.

        Returns:
            the pause before the next time, None where nothing is left; and when the work has to end.
        """
        began = self.clock.now()
        lease.require()
        plan = self._plan(cluster, api, groups, memory, began)
        planned, until = self.clock.now(), time.ends(plan)
        spent = (planned - began).total_seconds()
        over = min(until, plan.expires or until)
        outcomes = executor.carry_out(
            plan, held=lambda: lease.held, enough=lambda: self.clock.now() >= over
        )
        acted = (self.clock.now() - planned).total_seconds()
        memory.throughput = memory.throughput.measured(len(outcomes), acted, spent)
        if outcomes:
            self.telemetry.log(
                "plan carried out",
                cluster=cluster.name,
                actions=len(outcomes),
                planned_in=round(spent, 1),
                carried_out_in=round(acted, 1),
                under_way=memory.pace.queued,
                bound=memory.pace.bound,
            )
        self._learn(memory, outcomes)
        placed = [
            o.action for o in outcomes if o.done and isinstance(o.action, LabelNode | Release)
        ]
        words = words_of(placed, began)
        news = memory.news(defer=len(outcomes) >= SAMPLE or self.clock.now() >= over)
        self._save([*news, *([report_of(cluster.name, words, began)] if words else [])])
        lease.require()
        return self._pause(plan, outcomes) if plan.busy else None, until

    def _pause(self, plan: Plan, outcomes: Sequence[Outcome]) -> float:
        """Return the seconds until the next observation: less where a pod has to be told before it.

        It costs the API server nothing: a reconcile lists once, and then takes in what watches have told.
        """
        pause = max(PAUSE_SECONDS, requested_pause(outcomes))
        if plan.next_call is not None:
            pause = min(pause, max(0.0, (plan.next_call - self.clock.now()).total_seconds()))
        return pause

    def _plan(
        self,
        cluster: Cluster,
        api: ClusterApi,
        groups: NodeGroups,
        memory: ReconcileMemory,
        began: datetime,
    ) -> Plan:
        if memory.shifts is None:
            memory.shifts = self._shifts(cluster)
        seen = replace(api.observe(), policy=cluster.policy, shifts=memory.shifts)
        if reports_wanted(seen):
            seen = replace(seen, reports=self._past(cluster, memory))
        memory.count(seen, began)
        instances = self._instances(cluster, seen, memory)
        fresh = memory.wants_groups(seen.nodes, self.clock.now())
        while True:
            if fresh:
                memory.note_groups(self._read_groups(groups, seen.nodes), self.clock.now())
                memory.note_launches(seen.nodes)
                if memory.pools is None:
                    memory.pools = self._remembered(cluster)
            now, read = self.clock.now(), memory.groups or ()
            plan = plan_drain(
                seen.among(
                    groups=read,
                    instances=instances,
                    counts=memory.counts,
                    uncounted=memory.uncounted(seen, began),
                    pools=memory.pools,
                ),
                now,
                refusals=memory.refusals,
                refused=memory.refused,
                ahead=max(
                    now - began + 2 * memory.planning - timedelta(seconds=PAUSE_SECONDS),
                    timedelta(),
                ),
                pace=memory.pace,
                throughput=memory.throughput,
            )
            memory.planning = self.clock.now() - now
            if fresh or not any(isinstance(action, Grow) for action in plan.actions):
                break
            fresh = True  # somebody else may have asked since: look again before asking for more
        memory.learn(plan.reports)
        memory.pace = plan.pace
        return plan

    def _remembered(self, cluster: Cluster) -> Mapping[CapacityPool, float]:
        """Return the risks of capacity pools. Without them capacity is asked all the same."""
        now = self.clock.now()
        try:
            return risks(self.pools.read(cluster.place, now), now)
        except PlimsollError as error:
            self.telemetry.warn("capacity pools not read", because=str(error))
            return {}

    def _shifts(self, cluster: Cluster) -> Mapping[str, ShiftedZone] | None:
        """Return the zonal shifts that stand. Where they are not known, nothing is begun or undone for them."""
        now = self.clock.now()
        try:
            return shifted_zones(self.pools.shifts(cluster.place, now), cluster.name, now)
        except PlimsollError as error:
            self.telemetry.warn("zonal shifts not read", because=str(error))
            return None

    def _remember(self, cluster: Cluster, memory: ReconcileMemory) -> None:
        try:
            self.pools.put(cluster.place, memory.pool_events.values())
        except PlimsollError as error:
            self.telemetry.warn("capacity pools not written", because=str(error))

    def _past(self, cluster: Cluster, memory: ReconcileMemory) -> Sequence[Report] | None:
        """Return the newest reports, also of interruptions whose Nodes are gone."""
        if memory.past is None:
            try:
                memory.past = self.reports.list(cluster.name, MOVES)
            except PlimsollError as error:
                self.telemetry.warn("reports not read", because=str(error))
                return None
        return [*memory.past, *memory.reports.values()]

    def _read_groups(self, groups: NodeGroups, nodes: Sequence[Node]) -> Sequence[NodeGroup] | None:
        """Read the node groups. Without them pods still move to the headroom that there is."""
        try:
            return groups.list(nodes)
        except (Temporary, Refused, BadInput) as error:
            self.telemetry.warn("node groups not read", because=str(error))
            return None

    def _instances(
        self, cluster: Cluster, seen: Observation, memory: ReconcileMemory
    ) -> Mapping[str, Instance]:
        """Ask EC2 about the instances of nodes with a record, but for those whose end is yet to come.

        What its tags name as another cluster's is not believed to be this one's.

        Only what it says now counts: one that it does not know may live in another region, and one
        that was stopped may run again.
        """
        now = self.clock.now()
        asked = [
            node.instance
            for node in seen.nodes
            if node.instance is not None
            and node.interruption is not None
            and node.instance not in memory.terminated
            and not (node.ready and _is_near(node.interruption.deadline, now))
        ]
        try:
            described = self.instances_of(cluster).describe(asked) if asked else {}
            said = {i: e for i, e in described.items() if not e.is_of_another(seen.cluster)}
        except PlimsollError as error:  # a role that cannot be assumed too: pods are still moved
            self.telemetry.warn("instances not read", because=str(error))
            said = {}
        memory.terminated |= {i: found for i, found in said.items() if found.state == "terminated"}
        return {**said, **memory.terminated}

    def _learn(self, memory: ReconcileMemory, outcomes: Sequence[Outcome]) -> None:
        now = self.clock.now()
        memory.pace = memory.pace.begun(
            sum(o.done and begins(o.action) for o in outcomes),
            now,
            throttled=any(isinstance(o.error, Throttled) for o in outcomes),
        )
        for outcome in outcomes:
            refused = isinstance(outcome.error, Refused | BadInput)
            match outcome.action:
                case Grow(group=group, token=token):
                    memory.groups = None
                    if outcome.error is not None:
                        memory.not_grown(group, outcome.error, now)
                    elif outcome.done:
                        memory.grown(group, outcome.promised, now)
                        memory.add(added(group, outcome.promised, now, token))
                case TerminateInstance(shrunk=NodeGroup() as group) as action if outcome.done:
                    memory.groups = None
                    memory.add(
                        added(group, -1, now, action.interruption.instance),
                        action.interruption.identity,
                    )
                case Evict(pod=pod) if outcome.overruled is not None:
                    memory.overrule(pod, outcome.overruled)
                case Release(replica_set=made) if refused:
                    why = f"its release was refused: {outcome.error}"
                    memory.refused[str(made.controller)] = why
                case (
                    UndoRelease() | Unguard() | Evict() | LabelNode() | Exclude() | TaintNode()
                ) as action if refused:
                    memory.refused[action.target] = f"{action.target}: {outcome.error}"

    def _save(self, reports: Sequence[Report]) -> Sequence[Report]:
        """Write reports, and return what stands there then.

        A drain does not wait for a database: what fails is only logged.
        """
        answers = self.workers.run([lambda r=r: self.reports.merge(r) for r in reports])  # type: ignore[misc]  # mypy cannot infer a lambda with a default
        for report, answer in zip(reports, answers, strict=True):
            if isinstance(answer, Exception):
                self.telemetry.warn(
                    "report not written", interruption=report.interruption, because=str(answer)
                )
        return [
            report if isinstance(answer, Exception) else answer
            for report, answer in zip(reports, answers, strict=True)
        ]


def _is_near(deadline: datetime | None, now: datetime) -> bool:
    return deadline is not None and now < deadline < now + NEAR
