"""EKS managed node groups: EKS drains their spot nodes itself, and nobody can tell it not to.

At a rebalance recommendation a replacement is launched, and the node is drained once that is Ready;
at an interruption notice it is drained whether or not that is Ready. Sources:
https://docs.aws.amazon.com/eks/latest/userguide/managed-node-groups.html#managed-node-group-capacity-types
and https://docs.aws.amazon.com/autoscaling/ec2/userguide/ec2-auto-scaling-capacity-rebalancing.html.
No page says how soon after a notice EKS evicts, so a drill may delay it, nor how soon a refused eviction is tried
again: as with `kubectl drain`, it is assumed.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Final, override

from plimsoll.domain.errors import Refused
from plimsoll_simulation.fake_aws.fleet import RETRY
from plimsoll_simulation.fake_aws.machines import Machine
from plimsoll_simulation.rigs.simulated.other_controllers.drainer import Drain, Drainer, Life

INTERRUPTED: Final = frozenset({"spot-interruption", "lifecycle-terminate"})
ADVISED: Final = frozenset({"rebalance-recommendation"})
LONGEST: Final = timedelta(minutes=15)
"""After so long EKS lets the instance end, whatever budgets still refuse. The user guide says it of AZRebalance and of
scale-in; an instance that Capacity Rebalancing replaces is terminated through the same lifecycle hook. Sources:
https://docs.aws.amazon.com/eks/latest/userguide/managed-node-groups.html#managed-node-group-concepts and
https://github.com/aws/containers-roadmap/issues/1852"""


@dataclass(slots=True)
class ManagedNodeGroup(Drainer):
    """The drains of all managed node groups of a cluster."""

    replacements: dict[Life, Machine | datetime] = field(default_factory=dict)
    """Of an instance that AWS advises to leave; a time: when a refused launch is tried again."""

    @property
    @override
    def delay(self) -> timedelta:
        return self.rig_cluster.spec.queue_delay

    @override
    def chosen(self) -> Iterator[Machine]:
        for machine in self._managed(INTERRUPTED):
            yield machine
        for machine in list(self._managed(ADVISED)):
            replacement = self._replacement(machine)
            if replacement is not None and replacement.joined:
                yield machine

    @property
    @override
    def under_way(self) -> bool:
        machines = self.rig_cluster.fleet.machine
        return super(ManagedNodeGroup, self).under_way or any(
            machines[life[0]].gone is None for life in (*self.replacements, *self.drains)
        )

    @override
    def advance(self, drain: Drain) -> None:
        super(ManagedNodeGroup, self).advance(drain)
        if drain.machine.gone is None and drain.began + LONGEST <= self.clock.now():
            self.after(drain)

    @override
    def after(self, drain: Drain) -> None:
        self.rig_cluster.fleet.end(drain.machine.id, self.clock.now())
        self.clock.touch(self.rig_cluster.fleet)

    def _managed(self, kinds: frozenset[str]) -> Iterator[Machine]:
        for machine in self.told(kinds):
            if machine.group.kind == "eks-nodegroup" and machine.spot:
                yield machine

    def _replacement(self, machine: Machine) -> Machine | None:
        """Return what is launched in an instance's place; launch it first where nothing is."""
        life, fleet, now = (machine.id, machine.launches), self.rig_cluster.fleet, self.clock.now()
        found = self.replacements.get(life, now)
        if isinstance(found, Machine):
            return found
        if found <= now:
            try:
                started = fleet.launch(machine.group.name, 1, None, now, replacement=True)
            except Refused:
                started = ()
            found = now + RETRY
            if started:  # none while launches are stalled
                (found,) = started
                group = fleet.group(machine.group.name)
                found.added = group.has_more_than_owner_wants(ending=1)
            self.replacements[life] = found
            self.clock.touch(fleet)
        return found if isinstance(found, Machine) else None
