"""What a plan of the queues is made from, and what runs, counted by queue."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field

from plimsoll.domain.errors import BadInput
from plimsoll.domain.kubernetes import Node, Pod, Resources
from plimsoll_batch.domain.capacity import Capacity, Placement
from plimsoll_batch.domain.jobs import FlavorResource, Gang, RunningGang, Shape, amounts_of
from plimsoll_batch.domain.quota import (
    Assignment,
    DominantResourceShare,
    Drf,
    HierarchicalDrf,
    Holder,
    Options,
    Order,
    QueueConfiguration,
    QuotaNode,
    QuotaTrees,
    Shares,
    Unassigned,
    WaterFilling,
    options_of,
    problems_of,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class QueueState:
    """Everything that a plan is made from."""

    configuration: QueueConfiguration
    gangs: Sequence[Gang]
    """Those that wait."""
    running: Sequence[RunningGang] = ()
    nodes: Sequence[Node] | None = None
    """None: only quota decides."""
    sums: Mapping[str, Resources] = field(default_factory=dict)
    """Node -> what its pods request, without those of gangs and those in `pods`."""
    pods: Sequence[Pod] = ()
    """Pods that others have to keep away from, or near to."""
    capacity: Capacity | None = None
    """Node groups that may be asked; None: none is, or they are not known yet."""
    shared: Collection[str] = ()
    """Nodes with pods that are of no gang and do not belong to the node."""

    def placement(self) -> Placement | None:
        """Return the nodes with what runs on them; None where they are not known."""
        if self.nodes is None:
            return None
        return Placement(
            self.nodes, self.sums, self.running, self.configuration, self.pods, shared=self.shared
        )


class QueueSnapshot:
    """What runs, counted in the trees of a configuration."""

    def __init__(self, seen: QueueState) -> None:
        """Count it.

        Raises:
            BadInput: the configuration has problems.
        """
        found = problems_of(seen.configuration)
        if found:
            raise BadInput("the configuration of the queues: " + "; ".join(found))
        self.quotas = QuotaTrees(seen.configuration)
        self._waiting, self._free = seen.gangs, seen.configuration.free_resources
        self.queues = {queue.name: queue for queue in seen.configuration.queues}
        self.flavors = {flavor.name: flavor for flavor in seen.configuration.flavors}
        self.holders: dict[QuotaNode, dict[str, Holder]] = defaultdict(dict)
        """Queue -> uid -> what runs in it."""
        self._options: dict[tuple[str, Shape], Options | Unassigned] = {}
        for running in seen.running:
            node = self.quotas.queues.get(running.gang.queue)
            if node is not None:
                amounts = self.quotas.amounts(running.usage.items())
                holder = Holder(queue=node, running=running, amounts=amounts)
                self.holders[node][running.gang.uid] = holder
                node.add_all(amounts)

    def options(self, gang: Gang) -> Options | Unassigned:
        """Return the flavors that a gang may ever get in its queue."""
        key = (gang.queue, gang.shape)
        if key not in self._options:
            queue = self.queues[gang.queue]
            self._options[key] = options_of(
                gang.shape, queue, self.flavors, self.quotas.number, self._free
            )
        return self._options[key]

    def shares(self, blocked: Collection[QuotaNode]) -> Mapping[Order, Shares]:
        """Return the measure of shares of each order but that by priority.

        Args:
            blocked: queues of which nothing can be admitted at present; it may change.
        """
        frs = self.quotas.frs
        found: dict[Order, Shares] = {
            Order.DOMINANT_RESOURCE_SHARE: DominantResourceShare(frs),
            Order.DRF: Drf(frs),
            Order.HIERARCHICAL_DRF: HierarchicalDrf(frs, blocked),
        }
        filled = [root for root in self.quotas.roots if root.order is Order.WATER_FILLING]
        if filled:
            found[Order.WATER_FILLING] = WaterFilling(filled, frs, self._requested())
        return found

    def _requested(self) -> Mapping[QuotaNode, Mapping[str, int]]:
        """Return what the gangs of each queue request, those that run included, by resource."""
        found: dict[QuotaNode, dict[str, int]] = defaultdict(lambda: defaultdict(int))
        for node, holders in self.holders.items():
            for holder in holders.values():
                for (_, resource), amount in holder.running.usage.items():
                    found[node][resource] += amount
        for gang in self._waiting:
            waits_in = self.quotas.queues.get(gang.queue)
            if waits_in is not None and gang.entitled:
                for role in gang.shape.roles:
                    for name, amount in amounts_of(role.scheduling.requests, role.pods).items():
                        found[waits_in][name] += amount
        return found

    def beyond_quota(self, grown: Collection[str]) -> Collection[str]:
        """Return which of these gangs, by uid, have to stop so that their queues have quota for the others.

        The last admitted stops first.
        """
        holders = [h for held in self.holders.values() for uid, h in held.items() if uid in grown]
        found = []
        for holder in sorted(holders, key=lambda h: h.running.admitted, reverse=True):
            if any(holder.queue.available(i) < 0 for i, _ in holder.amounts):
                holder.queue.remove_all(holder.amounts)
                found.append(holder.running.gang.uid)
        return found

    def usage(self, assignment: Assignment) -> dict[FlavorResource, int]:
        """Return what an assignment counts for, by name."""
        return {self.quotas.frs[i]: amount for i, amount in assignment.amounts}

    def why_held(self, gang: Gang) -> str | None:
        """Say why a gang is not considered at all; None where it is."""
        queue = self.queues.get(gang.queue)
        if queue is None:
            return f"there is no queue {gang.queue}"
        if queue.stopped:
            return f"queue {gang.queue} is stopped"
        return "; ".join(gang.gates) or None
