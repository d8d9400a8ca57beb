"""Asks node groups for the nodes that gangs lack, and remembers what became of that.

What was asked for is written on a Job of the gang first. Groups are read only while a gang with quota has no
place, and again before anything is asked.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import Final

from plimsoll.domain.drain import added_entry
from plimsoll.domain.errors import Conflict, NotFound, Permanent, PlimsollError, Temporary
from plimsoll.domain.kubernetes import Node
from plimsoll.domain.node_groups import NodeGroup
from plimsoll.domain.registry import Cluster
from plimsoll.domain.reports import Report
from plimsoll.domain.spot import ranks_of
from plimsoll.services.ports import NodeGroups, Pools, Reports, Telemetry
from plimsoll.services.reconcile_memory import ReconcileMemory
from plimsoll_batch.domain.admission import QueuePlan, QueueState, plan_queues
from plimsoll_batch.domain.capacity import Capacity
from plimsoll_batch.domain.jobs import Ask, Gang, GangJobs, Job, NodeRequest
from plimsoll_batch.services.ports import QueueCluster

STALE: Final = timedelta(minutes=1)
"""How long node groups are believed while nothing is on its way."""
KIND: Final = "queues"
"""The kind of the reports that say what was added for gangs, and the first part of their ids."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ScaleUp:
    """Nodes for the gangs of one cluster. Keep one for each cluster: it remembers who refused."""

    cluster: Cluster
    groups: NodeGroups
    pools: Pools
    reports: Reports
    telemetry: Telemetry
    memory: ReconcileMemory = field(default_factory=ReconcileMemory)

    def plan(
        self, seen: QueueState, nodes: Sequence[Node], now: datetime, most_pods: int
    ) -> QueuePlan:
        """Plan the queues; node groups are read where that matters."""
        known = self._capacity(nodes)
        plan = plan_queues(replace(seen, capacity=known), now, most_pods=most_pods)
        read = self.memory.groups_read
        asks = any(each.request is not None for each in plan.awaiting)
        current = known is not None and read is not None and now < read + STALE and not asks
        # Planned with the known groups first: reading them costs AWS calls, and most cycles need no nodes.
        if not plan.lacks_nodes or (current and not self.memory.wants_groups(nodes, now)):
            return plan
        self._read(nodes, now)
        return plan_queues(replace(seen, capacity=self._capacity(nodes)), now, most_pods=most_pods)

    def carry_out(
        self,
        plan: QueuePlan,
        gangs: Mapping[str, GangJobs],
        cluster: QueueCluster,
        held: Callable[[], bool],
        now: datetime,
    ) -> Sequence[tuple[Gang, NodeRequest]]:
        """Ask for what a plan wants, and write down what was given up; return what was asked."""
        asked = []
        groups = {group.key: group for group in self.memory.groups or ()}
        for given in plan.given_up:
            self._attempt(cluster, gangs[given.gang.uid], given.request, held)
        for each in plan.awaiting:
            jobs, before = gangs[each.gang.uid], each.gang.request
            if each.request is not None:
                # Written on the Job before any group is asked: if the planner dies
                # in between, the next one repeats the request under the same tokens.
                job = self._attempt(cluster, jobs, each.request, held)
                if job is not None:
                    asked.append((each.gang, each.request))
                    self._ask(cluster, job, each.request, groups, now)
            elif before is not None and before.awaited(now) and not before.answered and held():
                self._ask(cluster, _holder(jobs, before), before.repeated(groups), groups, now)
        return asked

    def _attempt(
        self,
        cluster: QueueCluster,
        jobs: GangJobs,
        request: NodeRequest,
        held: Callable[[], bool],
    ) -> Job | None:
        """Write a request on a gang; None where that failed, or the Lease is not ours any more."""
        if not held():
            return None
        job = _holder(jobs, jobs.gang.request)
        try:
            return cluster.write_request(job, request)
        except PlimsollError as error:
            if not isinstance(error, Conflict | NotFound):
                facts = {"gang": str(jobs), "because": str(error)}
                self.telemetry.warn("request for nodes not written", **facts)
            return None

    def _ask(
        self,
        cluster: QueueCluster,
        job: Job,
        request: NodeRequest,
        groups: Mapping[str, NodeGroup],
        now: datetime,
    ) -> None:
        """Ask the groups of a request, and write down that they have answered.

        Where one cannot be asked now, the next cycle asks all of them again under the same tokens.
        """
        refused: dict[str, str] = {}
        promised, later = 0, False
        self.memory.groups = None  # they change now
        for ask in request.asks:
            group = groups.get(ask.group)
            if group is None:
                refused[ask.group] = f"there is no group {ask.group}"
                continue
            # The size at the time of the request, not the present one: a repeated request then counts once.
            group = replace(group, desired=ask.desired)
            facts: dict[str, object] = {"group": group.name, "gang": str(job.ref)}
            try:
                count = self.groups.grow(group, ask.add, ask.zone, ask.token)
            except Temporary as error:
                self.memory.not_grown(group, error, now)
                self.telemetry.warn("nodes not asked for", because=str(error), **facts)
                later = True
            except Permanent as error:
                self.memory.not_grown(group, error, now)
                self.telemetry.warn("nodes refused", because=str(error), **facts)
                refused[ask.group] = str(error)
            else:
                promised += count
                self.memory.grown(group, count, now)
                self.telemetry.log("nodes asked for", nodes=count, **facts)
                self._report(group, ask, count, request.at)
        # The request stays unanswered on the Job, and the next cycle repeats it.
        if later:
            return
        if promised and not refused:
            told = replace(request, answered=True)
        else:
            why = "; ".join(dict.fromkeys(refused.values())) or "no node was promised"
            told = request.gave_up(why, now, refused)
        try:
            cluster.write_request(job, told)
        except Conflict:
            return  # the next cycle asks again, and is told the same
        except PlimsollError as error:
            self.telemetry.warn("answer of node groups not written", because=str(error))

    def _report(self, group: NodeGroup, ask: Ask, count: int, at: datetime) -> None:
        """Tell the interruption path what was added: once it is empty, that gives it back."""
        hour = at.replace(minute=0, second=0, microsecond=0)
        report = Report(
            interruption=f"{KIND}@{self.cluster.name}/{hour:%Y-%m-%dT%H}",
            cluster=self.cluster.name,
            node="",
            kind=KIND,
            noticed=hour,
            closed=hour,
            added=added_entry(group, count, at, ask.token),
        )
        try:
            self.reports.merge(report)
        except PlimsollError as error:
            self.telemetry.warn("added nodes not reported", because=str(error))

    def _capacity(self, nodes: Sequence[Node]) -> Capacity | None:
        if self.memory.groups is None:
            return None
        return Capacity(
            cluster=self.cluster.name,
            groups=self.memory.groups,
            nodes=nodes,
            refusals=self.memory.refusals,
            pools=self.memory.pools or {},
        )

    def _read(self, nodes: Sequence[Node], now: datetime) -> None:
        """Read groups and pools; without them nothing is asked."""
        try:
            self.memory.note_groups(self.groups.list(nodes), now)
        except PlimsollError as error:
            self.memory.groups = None
            self.telemetry.warn("node groups not read", because=str(error))
            return
        try:
            self.memory.pools = ranks_of(self.pools.memory(self.cluster.place, now), now)
        except PlimsollError as error:
            self.telemetry.warn("capacity pools not read", because=str(error))


def _holder(jobs: GangJobs, request: NodeRequest | None) -> Job:
    """Return the Job that a gang's request stands on, or the first where none does yet."""
    return next((role for role in jobs.roles if role.request == request), jobs.roles[0])
