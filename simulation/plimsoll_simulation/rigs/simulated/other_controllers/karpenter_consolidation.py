"""Karpenter that consolidates too, with the defaults of a NodePool.

Nodes that are empty, or whose pods fit on others, are drained and terminated: the empty ones together, of the others one at a
time, and no more than a tenth of the NodePool. It replaces no node by a cheaper one, and knows neither drift nor expiry.

Sources: kubernetes-sigs/karpenter, pkg/controllers/disruption; https://karpenter.sh/docs/concepts/disruption/#consolidation
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Final, override

from plimsoll.domain.errors import Temporary
from plimsoll.domain.kubernetes import Node, left_by_karpenter
from plimsoll.domain.observation import Observation
from plimsoll_simulation.fake_aws.machines import Machine
from plimsoll_simulation.fake_aws.nodegroups import KARPENTER
from plimsoll_simulation.rigs.simulated.other_controllers.karpenter import Karpenter
from plimsoll_simulation.rigs.simulated.other_controllers.scale_in import (
    budgets_of,
    fit_elsewhere,
    movable,
)

PERIOD: Final = timedelta(seconds=10)
"""How often it looks for nodes that are not needed (pollingPeriod)."""
VALIDATED: Final = timedelta(seconds=15)
"""For how long a node must be so (consolidationTTL)."""
BUDGET: Final = 10
"""Of so many nodes of a NodePool one may be disrupted, rounded up (`nodes: 10%`)."""


@dataclass(slots=True)
class ConsolidatingKarpenter(Karpenter):
    """Karpenter in one cluster, whose NodePools have `consolidationPolicy: WhenEmptyOrUnderutilized`."""

    looked: datetime | None = None
    """When it looked last for nodes that are not needed."""
    since: dict[str, datetime] = field(default_factory=dict)
    """Name of a node that is not needed -> since when."""

    @override
    def chosen(self) -> Iterator[Machine]:
        yield from super(ConsolidatingKarpenter, self).chosen()
        now = self.clock.now()
        if self.looked is None or self.looked + PERIOD <= now:
            self.looked = now
            with suppress(Temporary):
                yield from self._consolidated(self.provisioner.api.observe(), now)

    def _consolidated(self, seen: Observation, now: datetime) -> Iterator[Machine]:
        """Yield the empty nodes, and one of the others, that are not needed: those with the fewest pods first."""
        alive = [m for m in self.rig_cluster.fleet.alive() if m.group.kind == KARPENTER]
        size = Counter(machine.group.name for machine in alive)
        left = {group: -(-count // BUDGET) for group, count in size.items()}
        for drain in self.drains.values():
            if drain.machine.gone is None:
                left[drain.machine.group.name] -= 1
        machines = {machine.node: machine for machine in alive}
        waiting = any(pod.pending for pod in seen.pods)
        unneeded = [
            node
            for node in seen.nodes
            if node.ready and node.name in machines and not waiting and _unneeded(seen, node, now)
        ]
        self.since = {node.name: self.since.get(node.name, now) for node in unneeded}
        for node in sorted(unneeded, key=lambda node: len(movable(seen, node))):
            machine = machines[node.name]
            if self.since[node.name] + VALIDATED <= now and left[machine.group.name] > 0:
                left[machine.group.name] -= 1
                yield machine
                if movable(seen, node):
                    return


def _unneeded(seen: Observation, node: Node, now: datetime) -> bool:
    """Whether nothing keeps a node, and its pods fit on others."""
    kept = any(
        left_by_karpenter(pod, now)
        or any(budget.disruptions_allowed <= 0 for budget in budgets_of(seen, pod))
        for pod in movable(seen, node)
    )
    return not kept and fit_elsewhere(seen, node)
