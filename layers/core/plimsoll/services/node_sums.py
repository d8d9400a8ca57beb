"""Capacity for a cluster that does not answer: what is interrupted says EC2, what it held the index."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from plimsoll.domain.actions import Grow, Plan
from plimsoll.domain.capacity import estimated_node, estimated_observation
from plimsoll.domain.drain import plan_drain
from plimsoll.domain.interruptions import NEAR, Interruption
from plimsoll.domain.registry import Cluster
from plimsoll.services.instance_locator import LocatedNotice
from plimsoll.services.node_cordon import by_instance, interruption_on
from plimsoll.services.ports import Clock, Instances, NodeGroups, NodeIndex


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeSums:
    """Plans the growth of node groups by the sums of requests in the node index."""

    index: NodeIndex
    instances_of: Callable[[Cluster], Instances]
    clock: Clock

    def plan(self, cluster: Cluster, groups: NodeGroups) -> Plan:
        """Return what to ask for nodes of the cluster whose deadline is near; nothing else is planned.

        Raises:
            PlimsollError: the groups, the index or EC2 cannot be read.
        """
        now = self.clock.now()
        read = groups.list(())
        entries = self.index.find(sorted({i for group in read for i in group.instances}))
        ours = {i: entry for i, entry in entries.items() if entry.cluster == cluster.name}
        located = [
            LocatedNotice.of(notice, ours[notice.instance])
            for notice in self.instances_of(cluster).interrupted(list(ours))
            if notice.instance in ours
        ]
        interrupted: dict[str, Interruption] = {}
        for batch in by_instance(located):
            found = interruption_on(estimated_node(batch[0].entry), batch, now)
            if isinstance(found, Interruption) and found.deadline and found.deadline - now < NEAR:
                interrupted[found.node] = found
        seen = estimated_observation(cluster.name, ours.values(), read, interrupted)
        plan = plan_drain(seen, now)
        # All other steps are about Nodes and pods that the estimate made up.
        return Plan(steps=tuple(s for s in plan.steps if isinstance(s.action, Grow)))
