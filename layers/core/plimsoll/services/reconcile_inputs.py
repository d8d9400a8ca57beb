"""What the plan of a drain needs besides the objects of its cluster.

Whatever of it cannot be read now is warned about, and the plan is made without it: pods still move.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from plimsoll.domain.drain import MOST_REPORTS
from plimsoll.domain.errors import BadInput, PlimsollError, Refused, Temporary
from plimsoll.domain.interruptions import is_near
from plimsoll.domain.kubernetes import Node, Ref
from plimsoll.domain.node_groups import Instance, NodeGroup
from plimsoll.domain.observation import Observation, ShiftedZone, WorkloadTimes
from plimsoll.domain.registry import Cluster
from plimsoll.domain.reports import Report
from plimsoll.domain.spot import CapacityPool, ranks_of
from plimsoll.domain.zones import shifted_zones
from plimsoll.services.observed_times import ObservedTimes, disrupted
from plimsoll.services.ports import Clock, Instances, NodeGroups, Pools, Reports, Telemetry
from plimsoll.services.reconcile_memory import ReconcileMemory


@dataclass(frozen=True, slots=True, kw_only=True)
class ReconcileInputs:
    """Reads node groups, instances, capacity pools, zonal shifts, observed times and reports for one reconcile."""

    cluster: Cluster
    node_groups: NodeGroups
    instances_of: Callable[[Cluster], Instances]
    pools: Pools
    reports: Reports
    observed_times: ObservedTimes
    memory: ReconcileMemory
    clock: Clock
    telemetry: Telemetry

    def groups(self, nodes: Sequence[Node]) -> Sequence[NodeGroup] | None:
        """Return the node groups. Without them pods still move to the headroom that there is."""
        try:
            return self.node_groups.list(nodes)
        except (Temporary, Refused, BadInput) as error:
            self.telemetry.warn("node groups not read", because=str(error))
            return None

    def instances(self, seen: Observation) -> Mapping[str, Instance]:
        """Ask EC2 about the instances of nodes with a record, but for those whose end is yet to come.

        What its tags name as another cluster's is not believed to be this one's.

        Only what it says now counts: one that it does not know may live in another region, and one
        that was stopped may run again.
        """
        now, memory = self.clock.now(), self.memory
        asked = [
            node.instance
            for node in seen.nodes
            if node.instance is not None
            and node.interruption is not None
            and node.instance not in memory.terminated
            and not (node.ready and is_near(node.interruption.deadline, now))
        ]
        try:
            described = self.instances_of(self.cluster).describe(asked) if asked else {}
            said = {i: e for i, e in described.items() if not e.is_of_another(seen.cluster)}
        except PlimsollError as error:  # a role that cannot be assumed too: pods are still moved
            self.telemetry.warn("instances not read", because=str(error))
            said = {}
        memory.terminated |= {i: found for i, found in said.items() if found.state == "terminated"}
        return {**said, **memory.terminated}

    def pool_ranks(self) -> Mapping[CapacityPool, float]:
        """Return what capacity pools are ranked by. Without it capacity is asked all the same."""
        now = self.clock.now()
        try:
            return ranks_of(self.pools.memory(self.cluster.place, now), now)
        except PlimsollError as error:
            self.telemetry.warn("capacity pools not read", because=str(error))
            return {}

    def shifts(self) -> Mapping[str, ShiftedZone] | None:
        """Return the zonal shifts that stand. Where they are not known, nothing is begun or undone for them."""
        now = self.clock.now()
        try:
            return shifted_zones(self.pools.shifts(self.cluster.place, now), self.cluster.name, now)
        except PlimsollError as error:
            self.telemetry.warn("zonal shifts not read", because=str(error))
            return None

    def times(self, seen: Observation) -> Mapping[Ref, WorkloadTimes]:
        """Return how long pods take of the workloads that are disrupted."""
        return self.memory.times.of(self.observed_times, self.cluster.name, disrupted(seen))

    def remember_counts(self) -> None:
        """Write down how many pods controllers have that we do not know: the next reconcile may find one less."""
        if fresh := self.memory.fresh_counts():
            self.observed_times.remember(self.cluster.name, fresh)

    def past_reports(self) -> Sequence[Report] | None:
        """Return the newest reports, also of interruptions whose Nodes are gone."""
        memory = self.memory
        if memory.past is None:
            try:
                memory.past = self.reports.list(self.cluster.name, MOST_REPORTS)
            except PlimsollError as error:
                self.telemetry.warn("reports not read", because=str(error))
                return None
        return [*memory.past, *memory.reports.values()]
