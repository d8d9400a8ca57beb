"""The on-demand reserve: what on-demand nodes have free, against what a loss of nodes would need.

It is a sum, so it can promise too much where what is free is in small pieces. What single replicas may
rely on is counted in whole places instead, node by node.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain, repeat
from typing import Final

from plimsoll.domain.kubernetes import Node, Resources, Scheduling, total_resources, why_never
from plimsoll.domain.observation import STAYS_PUT, Observation
from plimsoll.domain.placement.spread_groups import ON_DEMAND, SPOT, family_of

STAYS_FACTOR: Final = 2
"""Single replicas stay on spot while the reserve has a place for each of them twice: others take of it too."""
GOES_FACTOR: Final = 3
"""They go there while it has three: else they would go and come back."""
ALL_SPOT: Final = "all spot"
LOSSES: Final[Mapping[str, Callable[[Node], str | None]]] = {
    "node": lambda node: node.name,
    "family": lambda node: family_of(node) if node.capacity == SPOT else None,
    "zone": lambda node: node.zone,
    ALL_SPOT: lambda node: ALL_SPOT if node.capacity == SPOT else None,
}
"""What can be lost at once -> which loss of its kind takes a node."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Loss:
    """The loss of its kind that the on-demand reserve covers least, of those that need anything."""

    kind: str
    """`node`, `family` (of spot instances), `zone` or `all spot`."""
    name: str
    needs: Resources
    """What the pods request that would have to run elsewhere; those of DaemonSets would not."""
    free: Resources
    """What the on-demand nodes have free that are not lost themselves."""

    @property
    def covered(self) -> float:
        """The least share of processors, memory and pods of the need that is free; 1 or more: enough."""
        pairs = (
            (self.free.cpu, self.needs.cpu),
            (self.free.memory, self.needs.memory),
            (self.free.pods, self.needs.pods),
        )
        return min(free / need for free, need in pairs if need)


def losses(seen: Observation) -> Sequence[Loss]:
    """Return for each kind of loss the one that the reserve covers least."""
    staying: defaultdict[str | None, list[Resources]] = defaultdict(list)
    # By workload, since a look at each of a million pods takes long.
    for ref, pods in seen.of_workload.items():
        if ref.kind in STAYS_PUT:
            for pod in pods:
                staying[pod.node].append(pod.scheduling.requests)
    needs: dict[str, Resources] = {}
    reserve: dict[str, Resources] = {}
    for node in seen.nodes:
        requests = seen.bound.requests.get(node.name, Resources())
        needs[node.name] = requests - total_resources(staying.get(node.name, ()))
        if node.capacity == ON_DEMAND and node.staying:
            reserve[node.name] = node.allocatable - requests
    whole = total_resources([*reserve.values()])
    found: list[Loss] = []
    for kind, loss_of in LOSSES.items():
        lost: dict[str, list[str]] = defaultdict(list)
        for node in seen.nodes:
            name = loss_of(node)
            if name is not None:
                lost[name].append(node.name)
        judged = [
            Loss(
                kind=kind,
                name=name,
                needs=total_resources([needs[node] for node in nodes]),
                free=whole - total_resources([reserve[node] for node in nodes if node in reserve]),
            )
            for name, nodes in sorted(lost.items())
        ]
        costly = [loss for loss in judged if loss.needs.pods]
        found += [min(costly, key=lambda loss: loss.covered)] if costly else []
    return found


def takes(
    riders: Iterable[tuple[Scheduling, int]], nodes: Sequence[Node], free: Mapping[str, Resources]
) -> bool:
    """Whether nodes have places for so many pods of each of these shapes, all together.

    Nodes are filled one after the other, so that the answer costs one look at each of many pods: a yes
    is proven, and a no may be wrong where shapes differ much.
    """
    left = {node.name: free[node.name] for node in nodes}
    at = 0
    for scheduling in chain.from_iterable(repeat(each, count) for each, count in riders):
        need = scheduling.requests
        for _ in nodes:
            node = nodes[at]
            if need.within(left[node.name]) and why_never(scheduling, node) is None:
                left[node.name] -= need
                break
            at = (at + 1) % len(nodes)
        else:
            return False
    return True
