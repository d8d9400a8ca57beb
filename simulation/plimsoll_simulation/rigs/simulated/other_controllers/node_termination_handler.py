"""aws-node-termination-handler: cordons and evicts at the notice, whatever is Ready elsewhere.

Source: https://github.com/aws/aws-node-termination-handler, cmd/node-termination-handler.go and
pkg/node/node.go (v1.25). It embeds `kubectl drain`; a drain that is over time begins anew.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import timedelta
from itertools import islice
from typing import Final, override

from plimsoll_simulation.fake_aws.machines import Machine
from plimsoll_simulation.rigs.simulated.other_controllers.drainer import Drain, Drainer

WORKERS: Final = 10
"""Each keeps its node for the whole drain."""
QUEUED: Final = frozenset(
    {
        "spot-interruption",
        "rebalance-recommendation",
        "lifecycle-terminate",
        "health-scheduled-change",
        "state-change",
    }
)
"""All that the queue brings is drained: there is no switch for one kind."""
FROM_METADATA: Final = frozenset({"spot-interruption", "health-scheduled-change"})
"""What is drained by default in IMDS mode: recommendations are not even read."""


class QueueMode(Drainer):
    """One program for the cluster, that reads a queue."""

    @property
    @override
    def delay(self) -> timedelta:
        return self.rig_cluster.spec.queue_delay

    @override
    def chosen(self) -> Iterator[Machine]:
        under_way = sum(
            drain.emptied is None and drain.machine.gone is None for drain in self.drains.values()
        )
        new = (m for m in self.told(QUEUED) if (m.id, m.launches) not in self.drains)
        return islice(new, max(0, WORKERS - under_way))

    @override
    def after(self, drain: Drain) -> None:
        for hook in list(drain.machine.held):
            self.rig_cluster.fleet.complete(drain.machine.id, hook.name, self.clock.now())
            self.clock.touch(self.rig_cluster.fleet)


class ImdsMode(Drainer):
    """One pod on each node, that asks the node's own metadata."""

    @override
    def chosen(self) -> Iterable[Machine]:
        return self.told(FROM_METADATA)
