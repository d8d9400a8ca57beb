"""Plans the queues of clusters and carries the plans out, as long as there is something to do.

One cycle reads the cluster, carries on what was begun before, and plans on what is left. A cycle that only
suspended somebody ends there: what that frees is not free before the pods are gone, and another sees it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import Final

from plimsoll.domain.errors import BadInput
from plimsoll.domain.interruptions import Policy
from plimsoll.domain.kubernetes import Ref
from plimsoll.domain.observation import WorkloadTimes
from plimsoll.domain.registry import Cluster, Mode
from plimsoll.services.cluster_events import create_events
from plimsoll.services.lease import Lease
from plimsoll.services.observed_times import KnownTimes, ObservedTimes
from plimsoll.services.ports import Registry, RepeatingClock, Telemetry, WakeUps, Workers
from plimsoll_batch.domain.admission import (
    QueuePlan,
    QueueSnapshot,
    QueueState,
    actions_of,
    plan_queues,
)
from plimsoll_batch.domain.capacity import plan_leases
from plimsoll_batch.domain.jobs import (
    GangJobs,
    Suspend,
    plan_deadlines,
    preemption_in,
    reclaimed_at,
    unstated_classes,
    upkeep,
)
from plimsoll_batch.domain.queue_metrics import step_measures, waiting_measures
from plimsoll_batch.domain.quota import QueueConfiguration
from plimsoll_batch.services.executor import Executor, Outcome
from plimsoll_batch.services.ports import ClusterObjects, QueueCluster, QueueMeter
from plimsoll_batch.services.preemption_log import PreemptionLog
from plimsoll_batch.services.queue_observation import Seen, seen_in
from plimsoll_batch.services.scale_up import ScaleUp

CYCLE_SECONDS: Final = 1.0
"""From one cycle to the next while gangs start or stop."""
IDLE_SECONDS: Final = 3.0
"""The same while gangs only wait."""
PLAN_SECONDS: Final = 52.0
"""How long a run of the stack plans: less than from one scheduled wake-up to the next, so that each finds the Lease free."""
PODS_PER_SECOND: Final = 50
"""What is started without being told how much a control plane takes: the rate of a scheduler's client by
default. https://kubernetes.io/docs/reference/config-api/kube-scheduler-config.v1/"""

_RECENT: Final = timedelta(seconds=IDLE_SECONDS)


@dataclass(frozen=True, slots=True, kw_only=True)
class Cycle:
    """What one cycle came to."""

    plan: QueuePlan | None
    """None: there are no queues, or what was begun before had to be carried on first."""
    state: QueueState | None = None
    """What was planned for; None: there are no queues."""
    at: datetime | None = None
    """When it was read."""
    outcomes: Sequence[Outcome] = ()
    moving: bool = False
    """Whether gangs start or stop at this moment."""
    waiting: int = 0
    """Gangs that wait; those that somebody started by hand do not."""


@dataclass(frozen=True, slots=True, kw_only=True)
class QueueService:
    """Plans the queues of one cluster."""

    name: str
    cluster: QueueCluster
    clock: RepeatingClock
    workers: Workers
    telemetry: Telemetry
    policy: Policy = field(default_factory=Policy)
    """Jobs of the namespaces that it only observes count as if they named no queue."""
    pods_per_second: int = PODS_PER_SECOND
    growing: ScaleUp | None = None
    """None: no nodes are asked for."""
    observed_times: ObservedTimes | None = None
    """None: of checkpoints only what owners state is known."""
    meter: QueueMeter | None = None
    """None: nothing is measured."""
    preemptions: PreemptionLog | None = None
    """None: no history is kept."""

    def run(self, *, holder: str, seconds: float, cycle_seconds: float = CYCLE_SECONDS) -> int:
        """Run cycles as long as gangs wait, start or stop, but no longer than so many seconds.

        Args:
            holder: in whose name the Lease is taken; different for every run.
            seconds: how long.
            cycle_seconds: from one cycle to the next while something moves.

        Returns:
            how many cycles it made; 0 where another planner holds the Lease.

        Raises:
            PlimsollError: the cluster does not answer, or refuses what is needed.
        """
        # The queues have their own Lease: the drain works at the
        # same time, and the writes of both have preconditions.
        lease = Lease(api=self.cluster, clock=self.clock, cluster=self.name, holder=holder)
        if not lease.take():
            self.telemetry.log("another planner is at work", cluster=self.name)
            return 0
        end = self.clock.now() + timedelta(seconds=seconds)
        known, cycles, measured = KnownTimes(), 0, False
        with lease.kept(), self.cluster.following() as followed:
            while lease.held:
                cycles += 1
                cycle = self.cycle(followed, lease, known)
                measured = self._measure(cycle, waiting=not measured) or measured
                moving = cycle.moving or bool(cycle.outcomes)
                pause = cycle_seconds if moving else max(cycle_seconds, IDLE_SECONDS)
                # Nothing moves or waits: the schedule or an event wakes the queues again.
                if not (moving or cycle.waiting):
                    break
                if self.clock.now() + timedelta(seconds=pause) >= end:
                    break
                self.clock.sleep(pause)
        return cycles

    def cycle(self, cluster: QueueCluster, lease: Lease, known: KnownTimes) -> Cycle:
        """Read, carry on, plan, carry out; once."""
        carrying = Executor(
            cluster=cluster, workers=self.workers, telemetry=self.telemetry, held=lambda: lease.held
        )
        try:
            configuration = cluster.configuration()
        except BadInput as error:
            self.telemetry.warn("queues not planned", cluster=self.name, because=str(error))
            carrying.tell_configuration(str(error))
            configuration = None
        # Without queues only leases are returned: a leased node keeps all other pods away.
        if configuration is None:
            returned = self._return_leases(cluster, carrying)
            self._events(cluster, carrying)
            return Cycle(plan=None, moving=returned)
        now = self.clock.now()
        objects = self._read(cluster)
        seen = seen_in(objects, configuration, now)
        for jobs in seen.gangs.values():
            carrying.tell_problems(jobs)
        ends = reclaimed_at(objects.nodes, now)
        times = self._times(seen, ends, known)
        # Written first: a checkpoint needs the time until the deadline.
        carrying.tell_deadlines(plan_deadlines(seen.gangs.values(), ends, now, times))
        grown = {uid for uid, jobs in seen.gangs.items() if jobs.grown is not None}
        beyond = QueueSnapshot(seen.state).beyond_quota(grown) if grown else ()
        steps = upkeep([*seen.gangs.values()], now, ends, objects.nodes, beyond)
        # Earlier steps come first, without a plan: it would count gangs that change at this moment.
        outcomes = list(carrying.run(steps, now))
        plan, leased = None, False
        if not outcomes:
            plan = self._plan(seen, objects, now)
            if self.growing is not None:
                asked = self.growing.carry_out(
                    plan, seen.gangs, cluster, lambda: lease.held, self.clock.now()
                )
                for gang, request in asked:
                    carrying.tell_request(seen.gangs[gang.uid], request)
            # Nodes are leased before their gangs start: `not_yet` names the gangs that wait for that.
            leases = plan_leases(plan.dedicated, seen.gangs.values(), objects.nodes)
            leased = carrying.lease(leases.writes, seen.gangs)
            outcomes += carrying.run(
                actions_of(plan, seen.gangs, configuration, now, leases.not_yet), now
            )
        self._keep_preemptions(seen, outcomes)
        self._events(cluster, carrying)
        return Cycle(
            plan=plan,
            state=seen.state,
            at=now,
            outcomes=outcomes,
            moving=leased or any(_moves(jobs, ends) for jobs in seen.gangs.values()),
            waiting=sum(not seen.gangs[gang.uid].started for gang in seen.state.gangs),
        )

    def _keep_preemptions(self, seen: Seen, outcomes: Sequence[Outcome]) -> None:
        """Keep those of this cycle, and those of earlier ones that their Jobs tell of."""
        if self.preemptions is None:
            return
        stopped = [
            (o.step.jobs, o.step.stop) for o in outcomes if o.done and isinstance(o.step, Suspend)
        ]
        records = [preemption_in(stop, jobs.roles[0], jobs.gang.name) for jobs, stop in stopped]
        records += [jobs.gang.preempted for jobs in seen.gangs.values()]
        self.preemptions.keep(self.name, filter(None, records), self.clock.now())

    def _measure(self, cycle: Cycle, *, waiting: bool) -> bool:
        """Measure what a cycle did, and where asked who waits; say whether the latter was measured.

        Who waits is measured once in a run, in the first cycle that plans.
        """
        if self.meter is None or cycle.state is None or cycle.at is None:
            return False
        done = [each.step for each in cycle.outcomes if each.done]
        measures = [*step_measures(done, cycle.state.configuration, cycle.at)]
        plan = cycle.plan if waiting else None
        if plan is not None:
            measures += waiting_measures(cycle.state, plan)
        self.meter.measure(self.name, measures)
        return plan is not None

    def _times(
        self, seen: Seen, ends: Mapping[str, datetime], known: KnownTimes
    ) -> Mapping[Ref, WorkloadTimes]:
        if self.observed_times is None:
            return {}
        classes = frozenset(unstated_classes(seen.gangs.values(), ends))
        return known.of(self.observed_times, self.name, classes)

    def _read(self, cluster: QueueCluster) -> ClusterObjects:
        objects = cluster.read()
        jobs = [job for job in objects.jobs if not self.policy.observes(job.ref.namespace)]
        return replace(objects, jobs=jobs)

    def _return_leases(self, cluster: QueueCluster, carrying: Executor) -> bool:
        """Return nodes of gangs that do not run, where no queue is known; say whether any was.

        Gangs that run keep theirs. Most clusters without queues have no such node, and are not read.
        """
        if not cluster.leases():
            return False
        objects = self._read(cluster)
        gangs = seen_in(objects, QueueConfiguration(), self.clock.now()).gangs
        return carrying.lease(plan_leases({}, gangs.values(), objects.nodes).writes, gangs)

    def _plan(self, seen: Seen, objects: ClusterObjects, now: datetime) -> QueuePlan:
        most_pods = self._most_pods(seen, now)
        if self.growing is None:
            return plan_queues(seen.state, now, most_pods=most_pods)
        return self.growing.plan(seen.state, objects.nodes, now, most_pods)

    def _most_pods(self, seen: Seen, now: datetime) -> int:
        """Return how many pods may be started now; one gang always, however large."""
        recent = sum(
            role.pods
            for jobs in seen.gangs.values()
            for role in jobs.started
            if role.admission is not None and role.admission.at > now - _RECENT
        )
        left = int(self.pods_per_second * _RECENT.total_seconds()) - recent
        if recent:
            return max(0, left)
        sizes = (sum(role.pods for role in gang.shape.roles) for gang in seen.state.gangs)
        return max(left, max(sizes, default=0))

    def _events(self, cluster: QueueCluster, carrying: Executor) -> None:
        create_events(cluster, [*carrying.events.values()], self.workers, self.telemetry)


def _moves(jobs: GangJobs, ends: Mapping[str, datetime]) -> bool:
    """Whether a gang starts or stops, or is told when the first of its nodes goes."""
    told = any(role.told for role in jobs.started) and any(pod.node in ends for pod in jobs.pods)
    return told or jobs.stopping or jobs.starting


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterQueues:
    """Plans the queues of registered clusters that may be written to."""

    registry: Registry
    open: Callable[[Cluster], QueueCluster]
    """Returns the API of a cluster, the same object every time."""
    wake_ups: WakeUps
    clock: RepeatingClock
    workers: Workers
    telemetry: Telemetry
    pods_per_second: int
    growing: Callable[[Cluster], ScaleUp] | None = None
    """Returns what asks the node groups of a cluster, the same object every time; None: none is asked."""
    observed_times: ObservedTimes | None = None
    """As in `QueueService`."""
    meter: QueueMeter | None = None
    """As in `QueueService`."""
    preemptions: PreemptionLog | None = None
    """As in `QueueService`."""

    def wake(self) -> None:
        """Send each cluster that may be written to one wake-up.

        Raises:
            Temporary: some were not taken; the next schedule sends them again.
        """
        for cluster in self.registry.list():
            if cluster.mode is Mode.ACT:
                self.wake_ups.send(cluster.name, [0])

    def run(self, name: str, *, holder: str, seconds: float) -> int:
        """Plan the queues of a cluster for so long, and say how many cycles that took.

        Raises:
            PlimsollError: the cluster does not answer, or refuses what is needed.
        """
        cluster = self.registry.get(name)
        if cluster is None or cluster.mode is not Mode.ACT:
            self.telemetry.log("queues left alone", cluster=name)
            return 0
        service = QueueService(
            name=cluster.name,
            cluster=self.open(cluster),
            clock=self.clock,
            workers=self.workers,
            telemetry=self.telemetry,
            policy=cluster.policy,
            pods_per_second=self.pods_per_second,
            growing=None if self.growing is None else self.growing(cluster),
            observed_times=self.observed_times,
            meter=self.meter,
            preemptions=self.preemptions,
        )
        return service.run(holder=holder, seconds=seconds)
