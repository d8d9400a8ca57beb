"""Spread groups: which nodes share a group.

Instances of one family are reclaimed together in all zones of a region, those of different families
much less. So a spot group is made of whole families, and the groups are balanced by what their nodes
can hold. Where there are fewer families than groups, a spot group is made of zones of families.
On-demand nodes are dealt round, so that each on-demand group has nodes of every zone.

What is in a group stays there, unless moving it mends a large imbalance of spot groups, or an
on-demand group that no node takes pods for: a moved label changes what running workloads are spread over.
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
"""A spot group may hold this many times its even share before a family is moved out of it."""

type _Unit = tuple[str, str | None]
"""A family and, where families are dealt by zones, the zone; else None."""


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

    def most_spot_groups(self, on_demand_groups: int) -> int:
        """Return over how many spot groups replicas may be spread while so few on-demand groups are open.

        Then no floor of this layout is undercut, whatever the number of replicas: the floor rises only with each
        whole round of its groups, and the remainders repeat.
        """
        for spot_groups in range(self.spot_groups, 0, -1):
            fewer = Layout(on_demand_groups, spot_groups)
            rounds = range(1, on_demand_groups + spot_groups + 1)
            whole = [turn * (self.on_demand_groups + self.spot_groups) for turn in rounds]
            if all(fewer.floor(replicas) >= self.floor(replicas) for replicas in whole):
                return spot_groups
        return 0


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

    At most one family, or one zone of it, that has a group already changes it, and one on-demand node for each empty
    on-demand group. A second run over the result changes nothing more once the groups are balanced.
    """
    spot = [node for node in nodes if node.capacity == SPOT]
    on_demand = [node for node in nodes if node.capacity == ON_DEMAND]
    return _spot_groups(spot, layout) | _on_demand_groups(on_demand, layout)


def _spot_groups(spot: Sequence[Node], layout: Layout) -> dict[str, str]:
    families = {family_of(node) for node in spot}
    by_zone = len(families) < layout.spot_groups
    unit: dict[str, _Unit] = {
        node.name: (family_of(node), node.zone if by_zone else None) for node in spot
    }
    weights = _weights(spot, unit)
    names = [f"{SPOT}-{number}" for number in range(1, max(1, layout.spot_groups) + 1)]
    group = _present(spot, unit, label_key(layout), names)
    loads = dict.fromkeys(names, 0.0)
    for one, name in group.items():
        loads[name] += weights[one]
    for one in sorted(weights.keys() - group.keys(), key=lambda u: (-weights[u], u[0], u[1] or "")):
        group[one] = min(names, key=lambda name: (loads[name], name))
        loads[group[one]] += weights[one]
    _rebalance(group, weights, loads)
    return {node.name: group[unit[node.name]] for node in spot}


def _on_demand_groups(on_demand: Sequence[Node], layout: Layout) -> dict[str, str]:
    if layout.on_demand_groups <= 1:
        return {node.name: ON_DEMAND for node in on_demand}
    key = label_key(layout)
    names = [f"{ON_DEMAND}-{number}" for number in range(1, layout.on_demand_groups + 1)]
    group = {node.name: name for node in on_demand if (name := node.labels.get(key)) in names}
    weights = _weights(on_demand, {node.name: (node.name, None) for node in on_demand})
    of_zone, loads = Counter[tuple[str, str | None]](), dict.fromkeys(names, 0.0)

    def count(node: Node, name: str) -> None:
        of_zone[name, node.zone] += 1
        loads[name] += weights[node.name, None]

    for node in on_demand:
        if node.name in group:
            count(node, group[node.name])
    for node in sorted(on_demand, key=lambda n: (n.zone or "", n.name)):
        if node.name not in group:
            zone = node.zone
            group[node.name] = min(names, key=lambda g: (of_zone[g, zone], loads[g], g))
            count(node, group[node.name])
    _fill_empty(group, [node for node in on_demand if node.staying], names)
    return group


def _fill_empty(group: dict[str, str], staying: Sequence[Node], names: Sequence[str]) -> None:
    """Give each on-demand group that no node takes pods for one node of the group with the most.

    Else an even spread over the groups that are left would leave fewer replicas on on-demand.
    """
    for empty in names:
        if any(group[node.name] == empty for node in staying):
            continue
        counts = Counter(group[node.name] for node in staying)
        fullest = max(names, key=lambda name: counts[name])
        if counts[fullest] > 1:
            [node, *_] = sorted(n.name for n in staying if group[n.name] == fullest)
            group[node] = empty


def _weights(nodes: Sequence[Node], unit: Mapping[str, _Unit]) -> Mapping[_Unit, float]:
    """Return what the nodes of each unit hold: the mean of its shares of processors and memory."""
    cpu = sum(node.allocatable.cpu for node in nodes) or 1
    memory = sum(node.allocatable.memory for node in nodes) or 1
    weights: dict[_Unit, float] = defaultdict(float)
    for node in nodes:
        has = node.allocatable
        weights[unit[node.name]] += (has.cpu / cpu + has.memory / memory) / 2
    return weights


def _present(
    spot: Sequence[Node], unit: Mapping[str, _Unit], key: str, names: Sequence[str]
) -> dict[_Unit, str]:
    """Return the group that most labelled nodes of each unit are in."""
    seen: dict[_Unit, Counter[str]] = defaultdict(Counter)
    for node in spot:
        name = node.labels.get(key, "")
        if name in names:
            seen[unit[node.name]][name] += 1
    return {one: max(sorted(counts), key=lambda name: counts[name]) for one, counts in seen.items()}


def _rebalance(
    group: dict[_Unit, str], weights: Mapping[_Unit, float], loads: dict[str, float]
) -> None:
    """Move one unit from the fullest group to the emptiest, where that mends a large imbalance."""
    fullest = max(sorted(loads), key=lambda name: loads[name])
    emptiest = min(sorted(loads), key=lambda name: loads[name])
    if loads[fullest] <= TOLERATED_FACTOR * sum(loads.values()) / len(loads):
        return
    gap = loads[fullest] - loads[emptiest]
    movable = [u for u in group if group[u] == fullest and 0 < weights[u] < gap]
    if movable:
        nearest = min(movable, key=lambda u: (abs(gap / 2 - weights[u]), u[0], u[1] or ""))
        group[nearest] = emptiest
