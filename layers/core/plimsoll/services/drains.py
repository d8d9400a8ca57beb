"""Reconciles the drain of a cluster: one at a time, and another one where its time was too short.

A reconcile knows nothing that the cluster does not tell it, so killing one loses seconds only. The
cluster's Lease keeps two reconciles from doing the same work: see `plimsoll.services.lease`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Final

from plimsoll.domain.errors import PlimsollError, Temporary
from plimsoll.domain.kubernetes import event_of_report
from plimsoll.domain.node_groups import Refusal
from plimsoll.domain.registry import Cluster, Mode
from plimsoll.services.executor import Executor, Writers
from plimsoll.services.lease import Lease
from plimsoll.services.node_sums import NodeSums
from plimsoll.services.observed_times import ObservedTimes
from plimsoll.services.ports import (
    ClusterApi,
    Clusters,
    FrameSink,
    Instances,
    NodeGroups,
    Pools,
    RegisteredClusters,
    RepeatingClock,
    Reports,
    Span,
    Telemetry,
    Traces,
    WakeUps,
    Workers,
)
from plimsoll.services.reconcile import Reconcile, TimeLimit, pause_after
from plimsoll.services.reconcile_inputs import ReconcileInputs
from plimsoll.services.reconcile_memory import ReconcileMemory
from plimsoll.services.retry_policy import HURRIED_SECONDS, MAX_PAUSE_SECONDS, RECONCILE_SECONDS
from plimsoll.services.storm_frames import StormFrames

UNANSWERED: Final = timedelta(seconds=5)
"""How long a cluster may leave a reconcile without an answer until capacity is asked for all the same."""
TELLING: Final = timedelta(seconds=3)
"""How late Events are begun still: one that gets no answer takes seven seconds of the function's time."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DrainService:
    """Carries the open interruptions of clusters on."""

    registry: RegisteredClusters
    clusters: Clusters
    groups: Callable[[Cluster], NodeGroups]
    instances_of: Callable[[Cluster], Instances]
    node_sums: NodeSums
    reports: Reports
    pools: Pools
    observed_times: ObservedTimes
    wake_ups: WakeUps
    clock: RepeatingClock
    workers: Workers
    telemetry: Telemetry
    traces: Traces
    frames: Callable[[], FrameSink] | None = None
    """As in `Ports`."""
    refusals: dict[str, Mapping[str, Sequence[Refusal]]] = field(init=False, default_factory=dict)
    """By cluster: as `ReconcileMemory.refusals`, from the reconciles before this one in the same process."""

    def reconcile(
        self,
        cluster: str,
        holder: str,
        seconds: float = RECONCILE_SECONDS,
        hurried: float = HURRIED_SECONDS,
        traceparent: str | None = None,
    ) -> int:
        """Work on one cluster; return how often it was observed.

        Ends at once where another reconcile is at work, and early where nothing is left to do. Where
        something is left when the time is over, it wakes the cluster once more.

        Args:
            cluster: its registered name; one that was removed meanwhile is nothing to do.
            holder: who we are, for the Lease: different for every invocation.
            seconds: the time for work; ending needs about two seconds more.
            hurried: the same while a plan is hurried.
            traceparent: of the span that woke the cluster.

        Raises:
            Temporary: the cluster cannot be reached now; another wake-up will try.
        """
        known = self.registry.get(cluster)
        if known is None:
            self.telemetry.warn("wake-up for a cluster that is not registered", cluster=cluster)
            return 0
        if known.mode is not Mode.ACT:
            self.telemetry.log("wake-up of a cluster that is only observed", cluster=cluster)
            return 0
        # Opening the cluster reads nothing, so it may come before the Lease.
        with (
            self.traces.begin("reconcile", parent=traceparent, cluster=known.name) as span,
            self.clusters.open(known).following() as api,
        ):
            time = TimeLimit.of(self.clock.now(), seconds, hurried)
            return self._reconcile(known, api, holder, time, span)

    def _reconcile(
        self, known: Cluster, api: ClusterApi, holder: str, time: TimeLimit, span: Span
    ) -> int:
        groups, memory = self.groups(known), ReconcileMemory()
        # Refusals of node groups from earlier reconciles in this process. Another process finds them again.
        memory.keep_refusals(self.refusals.get(known.name, {}), self.clock.now())
        executor = Executor(
            writers=Writers(cluster=api, capacity=groups),
            workers=self.workers,
            telemetry=self.telemetry,
            span=span,
        )
        lease = Lease(api=api, clock=self.clock, cluster=known.name, holder=holder)
        # The Lease comes before the first observation: without
        # it, another reconcile may change the cluster meanwhile.
        if not self._take(lease, time, lambda: self._grow_unseen(known, groups, executor)):
            self.telemetry.log("another reconcile is at work", cluster=known.name)
            span.note(because="another reconcile is at work")
            return 0
        sink = None if self.frames is None else self.frames()
        frames = StormFrames(cluster=known.name, sink=sink, telemetry=self.telemetry)
        frames.begin()
        reconcile = Reconcile(
            cluster=known,
            api=api,
            inputs=ReconcileInputs(
                cluster=known,
                node_groups=groups,
                instances_of=self.instances_of,
                pools=self.pools,
                reports=self.reports,
                observed_times=self.observed_times,
                memory=memory,
                clock=self.clock,
                telemetry=self.telemetry,
            ),
            executor=executor,
            lease=lease,
            time=time,
            reports=self.reports,
            clock=self.clock,
            workers=self.workers,
            telemetry=self.telemetry,
            memory=memory,
            frames=frames,
            span=span,
        )
        try:
            with lease.kept():
                observations, left = reconcile.work()
            # After the Lease was returned: an earlier wake-up would find it live and end at once.
            if left is not None:
                self._wake_next(known.name, left)
            return observations
        # This runs after failures too. Reports come first, because no
        # other process has them; Events use the time that is left.
        finally:  # the Lease is free again: no drain waits for a database
            self.refusals[known.name] = memory.refusals
            executor.tell_repeated_failures()
            for report in reconcile.save(list(memory.reports.values())):
                executor.note(event_of_report(report))
            if self.clock.now() < time.hurried + TELLING:
                executor.create_events()
            self._remember(known, memory)
            frames.end()

    def _wake_next(self, cluster: str, pause: float) -> None:
        """Wake the drain for what is left: the next wake-up of the series may be too late for an eviction deadline.

        It begins a trace of its own, since a drain may last for days: links lead back to the notices.

        Only who had the Lease until its time was over does so, and one that finds a live Lease ends at
        once, so however many series and copies there are, one reconcile follows another.
        """
        try:
            self.wake_ups.send(cluster, [min(int(pause), MAX_PAUSE_SECONDS)])
        except PlimsollError as error:
            self.telemetry.warn("next wake-up not sent", cluster=cluster, because=str(error))

    def _take(self, lease: Lease, time: TimeLimit, unanswered: Callable[[], None]) -> bool:
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
                # This runs without the Lease, which no process can take now. Two reconciles that
                # see the same ask under the same token, and a node group serves a token once.
                if not called and self.clock.now() >= late:
                    called = True
                    unanswered()
                self.clock.sleep(pause_after(error, self.clock.now(), time.usual))

    def _grow_unseen(self, cluster: Cluster, groups: NodeGroups, executor: Executor) -> None:
        """Ask for capacity by the node index: new nodes start while the API server is away."""
        try:
            plan = self.node_sums.plan(cluster, groups)
        except PlimsollError as error:
            self.telemetry.warn("capacity not planned by the node index", because=str(error))
            return
        executor.carry_out(plan)

    def _remember(self, cluster: Cluster, memory: ReconcileMemory) -> None:
        try:
            self.pools.put(cluster.place, memory.pool_events.values())
        except PlimsollError as error:
            self.telemetry.warn("capacity pools not written", because=str(error))
        self.observed_times.remember(cluster.name, memory.endings.samples)
