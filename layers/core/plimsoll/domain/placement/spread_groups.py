"""Spread groups: which instance families share a spot group.

Instances of one family are reclaimed together in all zones of a region, those of different families
much less. So a group is made of whole families, and the groups are balanced by what their nodes can
hold. A family that is in a group stays there unless moving it mends a large imbalance: a moved label
changes what running workloads are spread over.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final, override

from plimsoll.domain.kubernetes import INSTANCE_TYPE, SPREAD_PREFIX, Node

ON_DEMAND: Final = "on-demand"
SPOT: Final = "spot"
UNKNOWN_FAMILY: Final = "unknown"
TOLERATED_FACTOR: Final = 1.5
"""A group may hold this many times its even share before a family is moved out of it."""


@dataclass(frozen=True, slots=True, order=True)
class Layout:
    """An even spread of the replicas over so many groups of each capacity."""

    on_demand_groups: int
    spot_groups: int

    @property
    def entry(self) -> str:
        """How labels and the admission policy name it: `3` with one on-demand group, else as in `3-1`."""
        if self.on_demand_groups == 1:
            return f"{self.spot_groups}"
        return f"{self.on_demand_groups}-{self.spot_groups}"

    @override
    def __str__(self) -> str:
        """Return it as an owner names it."""
        if not self.spot_groups:
            return "on-demand"
        if not self.on_demand_groups:
            return "no floor"
        return f"{self.on_demand_groups} + {self.spot_groups}"

    def floor(self, replicas: int) -> int:
        """Return how many of so many replicas it leaves on on-demand at least."""
        groups = self.on_demand_groups + self.spot_groups
        return self.on_demand_groups * (replicas // groups) if groups else 0


NO_GROUPS: Final = Layout(0, 0)
"""Of a workload that is not spread."""
SINGLE_REPLICA: Final = Layout(1, 0)
"""Of single replicas: all spot nodes are one group, open while on-demand can take it all."""
LAYOUTS: Final = (
    SINGLE_REPLICA,
    *(Layout(1, spot) for spot in (1, 2, 3)),
    Layout(2, 1),
    *(Layout(3, spot) for spot in (1, 2, 3)),
)
"""Those that nodes have labels for."""


def label_key(layout: Layout) -> str:
    """Return the label over which a workload with this layout is spread."""
    return f"{SPREAD_PREFIX}{layout.entry}"


def on_demand_group(name: str) -> bool:
    """Whether a group with this name is one of on-demand nodes."""
    return name.startswith(ON_DEMAND)


def family_of(node: Node) -> str:
    """Return the instance family of a node: `m5d` of `m5d.large`."""
    return node.labels.get(INSTANCE_TYPE, "").partition(".")[0] or UNKNOWN_FAMILY


def groups_of(nodes: Sequence[Node], layout: Layout) -> Mapping[str, str]:
    """Return node -> group, for all nodes of a cluster whose capacity is known.

    At most one family that has a group already changes it, so one run relabels the nodes of at most
    one family, and a second run over the result changes nothing more once the groups are balanced.
    """
    spot = [node for node in nodes if node.capacity == SPOT]
    weights = _weights(spot)
    names = [f"{SPOT}-{number}" for number in range(1, max(1, layout.spot_groups) + 1)]
    group = _present(spot, label_key(layout), names)
    loads = dict.fromkeys(names, 0.0)
    for family, name in group.items():
        loads[name] += weights[family]
    for family in sorted(weights.keys() - group.keys(), key=lambda f: (-weights[f], f)):
        group[family] = min(names, key=lambda name: (loads[name], name))
        loads[group[family]] += weights[family]
    _rebalance(group, weights, loads)
    found = {node.name: ON_DEMAND for node in nodes if node.capacity == ON_DEMAND}
    return found | {node.name: group[family_of(node)] for node in spot}


def _weights(spot: Sequence[Node]) -> Mapping[str, float]:
    """Return what the nodes of each family hold: the mean of its shares of processors and memory."""
    cpu = sum(node.allocatable.cpu for node in spot) or 1
    memory = sum(node.allocatable.memory for node in spot) or 1
    weights: dict[str, float] = defaultdict(float)
    for node in spot:
        has = node.allocatable
        weights[family_of(node)] += (has.cpu / cpu + has.memory / memory) / 2
    return weights


def _present(spot: Sequence[Node], key: str, names: Sequence[str]) -> dict[str, str]:
    """Return the group that most labelled nodes of each family are in."""
    seen: dict[str, Counter[str]] = defaultdict(Counter)
    for node in spot:
        name = node.labels.get(key, "")
        if name in names:
            seen[family_of(node)][name] += 1
    return {
        family: max(sorted(counts), key=lambda name: counts[name])
        for family, counts in seen.items()
    }


def _rebalance(
    group: dict[str, str], weights: Mapping[str, float], loads: dict[str, float]
) -> None:
    """Move one family from the fullest group to the emptiest, where that mends a large imbalance."""
    fullest = max(sorted(loads), key=lambda name: loads[name])
    emptiest = min(sorted(loads), key=lambda name: loads[name])
    if loads[fullest] <= TOLERATED_FACTOR * sum(loads.values()) / len(loads):
        return
    gap = loads[fullest] - loads[emptiest]
    movable = [f for f in group if group[f] == fullest and 0 < weights[f] < gap]
    if movable:
        group[min(sorted(movable), key=lambda f: abs(gap / 2 - weights[f]))] = emptiest
