"""Where the pods of a storm stand at time 0, for storms in which that is no chance.

All of them are placed, or none: what the scheduler placed beside them might have their places. Sizes are counted in
half cores, as workloads are drawn.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from plimsoll.domain.kubernetes import Resources
from plimsoll_simulation.fake_aws.nodegroups import NodeGroupSpec
from plimsoll_simulation.storms.workload import Workload

HALF: Final = 500
"""Half a core, in thousandths of one."""


class FreeCapacity:
    """What is free on the nodes of the start, in half cores."""

    def __init__(self, groups: Sequence[NodeGroupSpec]) -> None:
        self.free = {
            f"{group.name}-{number + 1}": Resources.parse(group.allocatable).cpu // HALF
            for group in groups
            for number in range(group.size)
        }

    def place(
        self, workloads: Iterable[Workload], on: Mapping[str, Sequence[str]], last: Sequence[str]
    ) -> Mapping[str, tuple[str, ...]] | None:
        """Place all pods of these workloads, and return where; None if they do not fit.

        Args:
            workloads: those that are placed first come first.
            on: the nodes that a workload is confined to, by its name.
            last: nodes that get a pod only where no other has a place.
        """
        placed: dict[str, tuple[str, ...]] = {}
        for workload in workloads:
            size, nodes = _halves(workload), []
            for _ in range(workload.replicas):
                may = [n for n in on.get(workload.name, self.free) if self.free[n] >= size]
                node = max(may, key=lambda n: (n not in last, self.free[n]), default=None)
                if node is None:
                    return None
                self.free[node] -= size
                nodes.append(node)
            placed[workload.name] = tuple(nodes)
        return placed

    def fill(self, nodes: Iterable[str], size: int) -> tuple[str, ...]:
        """Return the nodes on which pods of so many half cores fill what these have left, one for each."""
        return tuple(node for node in nodes for _ in range(self.free[node] // size))


def _halves(workload: Workload) -> int:
    return -(-workload.cpu // HALF)
