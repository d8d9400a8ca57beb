"""Spread groups: which instance families share a spot group.

Instances of one family are reclaimed together in all zones of a region, those of different families
much less. So a group is made of whole families, and the groups are balanced by what their nodes can
hold. A family that is in a group stays there unless moving it mends a large imbalance: a moved label
changes what running workloads are spread over.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from plimsoll.domain.kubernetes import INSTANCE_TYPE, SPREAD_PREFIX, Node

ON_DEMAND: Final = "on-demand"
SPOT: Final = "spot"
UNKNOWN_FAMILY: Final = "unknown"
TOLERATED_FACTOR: Final = 1.5
"""A group may hold this many times its even share before a family is moved out of it."""


def label_key(spot_groups: int) -> str:
    """Return the label over which a workload with so many spot groups is spread.

    Zero is for single replicas: all spot nodes are one group, open while on-demand can take it all.
    """
    return f"{SPREAD_PREFIX}{spot_groups}"


def family_of(node: Node) -> str:
    """Return the instance family of a node: `m5d` of `m5d.large`."""
    return node.labels.get(INSTANCE_TYPE, "").partition(".")[0] or UNKNOWN_FAMILY


def groups_of(nodes: Iterable[Node], spot_groups: int) -> Mapping[str, str]:
    """Return family -> spot group, for all spot nodes of a cluster.

    At most one family that has a group already changes it, so one run relabels the nodes of at most
    one family, and a second run over the result changes nothing more once the groups are balanced.
    """
    spot = [node for node in nodes if node.capacity == SPOT]
    weights = _weights(spot)
    names = [f"spot-{number}" for number in range(1, max(1, spot_groups) + 1)]
    group = _present(spot, label_key(spot_groups), names)
    loads = dict.fromkeys(names, 0.0)
    for family, name in group.items():
        loads[name] += weights[family]
    for family in sorted(weights.keys() - group.keys(), key=lambda f: (-weights[f], f)):
        group[family] = min(names, key=lambda name: (loads[name], name))
        loads[group[family]] += weights[family]
    _rebalance(group, weights, loads)
    return group


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
