"""An administrator who drains one node after the other, as for an upgrade, and knows of no notice.

Each stays cordoned until it has been empty for half a minute. `kubectl drain` without a timeout
tries refused evictions for ever. Source:
https://kubernetes.io/docs/tasks/administer-cluster/safely-drain-node/
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Final, override

from plimsoll_simulation.fake_aws.machines import Machine
from plimsoll_simulation.rigs.simulated.other_controllers.drainer import Drain, Drainer

BEGINS: Final = timedelta(minutes=1)
"""After time 0."""
WORK: Final = timedelta(seconds=30)
"""What is done with a node that is empty, before it is uncordoned."""


@dataclass(slots=True)
class KubectlDrain(Drainer):
    """One pass over the nodes that stood at the start, in the order of the scenario."""

    uncordoned: set[str] = field(default_factory=set)
    """Nodes that it is done with."""

    @override
    def chosen(self) -> Iterator[Machine]:
        now, started = self.clock.now(), self.rig_cluster.started
        if started is None or now < started + BEGINS:
            return
        for drain in self.drains.values():
            if drain.machine.gone is None and (drain.emptied is None or now < drain.emptied + WORK):
                return
        for machine in self.rig_cluster.fleet.alive():
            if machine.launched < started and (machine.id, machine.launches) not in self.drains:
                yield machine
                return

    @override
    def after(self, drain: Drain) -> None:
        emptied, name = drain.emptied, drain.machine.node
        node = self.rig_cluster.get("nodes", "", name)
        if node is None or emptied is None or self.clock.now() < emptied + WORK:
            return
        if node["spec"].get("unschedulable") and name not in self.uncordoned:
            self.send("PATCH", f"/api/v1/nodes/{name}", {"spec": {"unschedulable": None}})
        self.uncordoned.add(name)
