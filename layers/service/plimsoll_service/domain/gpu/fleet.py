"""Which nodes of a fleet get which layout, so that the fewest GPUs hold a demand and few nodes change.

A node is the unit of change: NVIDIA's mig-manager stops what uses the GPUs of the whole node, and pods have
to leave it before. So a node with a pod that stays keeps its layout, and others keep theirs where the
optimum allows it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from plimsoll_service.domain.gpu.geometry import Counts, MigGeometries, less
from plimsoll_service.domain.gpu.layouts import Layout, in_order, supply


@dataclass(frozen=True, slots=True, kw_only=True)
class GpuNode:
    """A node of the fleet."""

    name: str
    layout: Layout
    stays: bool = False
    """Whether a pod on it may not be moved, so that its layout is kept."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NodePlan:
    """What becomes of a node."""

    name: str
    before: Layout | None
    """None: the node has to be added."""
    after: Layout | None
    """None: the demand does not need the node."""
    stays: bool = False

    @property
    def changed(self) -> bool:
        """Whether the node is to be emptied, and its label changed."""
        return None not in (self.before, self.after) and self.before != self.after

    @property
    def rebuilt(self) -> int:
        """The GPUs whose instances are deleted and created."""
        if self.before is None or self.after is None:
            return 0
        return sum(a != b for a, b in zip(self.before, self.after, strict=True))


@dataclass(frozen=True, slots=True, kw_only=True)
class FleetPlan:
    """What becomes of the nodes of one GPU model."""

    nodes: Sequence[NodePlan]
    bound: int
    """No fewer GPUs hold the demand."""
    needed: int
    """The GPUs in use, beside those that complete a node. It is above the bound only for pods that stay."""

    @property
    def before(self) -> int:
        """The GPUs that there are."""
        return sum(len(node.before or ()) for node in self.nodes)

    @property
    def after(self) -> int:
        """The GPUs of the nodes that the plan uses."""
        return sum(len(node.after or ()) for node in self.nodes)

    @property
    def rebuilt(self) -> int:
        """The GPUs that are split anew."""
        return sum(node.rebuilt for node in self.nodes)


def plan_fleet(
    geometries: MigGeometries, demand: Counts, nodes: Sequence[GpuNode], *, per_node: int
) -> FleetPlan:
    """Return the plan of the fewest whole nodes that hold a demand.

    Args:
        geometries: of the GPU model.
        demand: all instances that pods need, those of pods that stay included.
        nodes: those that there are.
        per_node: GPUs of a node that has to be added.
    """
    staying = [node for node in nodes if node.stays]
    free = [node for node in nodes if not node.stays]
    rest = demand
    for node in staying:
        rest = less(rest, supply(node.layout))
    used, added = _fewest_nodes(free, geometries.needed(rest), per_node)
    limit = sum(len(node.layout) for node in used) + added * per_node
    needed = sum(len(node.layout) for node in staying) + geometries.needed(rest)
    kept, rest = _kept(geometries, rest, free, limit)
    names = {node.name for node in kept}
    others = [node for node in free if node.name not in names]
    used, added = _fewest_nodes(others, geometries.needed(rest), per_node)
    new = [f"new-{number}" for number in range(1, added + 1)]
    sizes = [*(len(node.layout) for node in used), *(per_node for _ in new)]
    layouts = _layouts(geometries.fewest(rest), sizes)
    after: Mapping[str, Layout] = dict(
        zip([*(node.name for node in used), *new], layouts, strict=True)
    ) | {node.name: node.layout for node in (*staying, *kept)}
    found = [
        NodePlan(name=node.name, before=node.layout, after=after.get(node.name), stays=node.stays)
        for node in nodes
    ]
    found += [NodePlan(name=name, before=None, after=after[name]) for name in new]
    return FleetPlan(nodes=found, bound=geometries.needed(demand), needed=needed)


def _fewest_nodes(nodes: Iterable[GpuNode], gpus: int, per_node: int) -> tuple[list[GpuNode], int]:
    """Return the nodes that have so many GPUs, and how many nodes have to be added to them.

    The largest come first, and the last is the smallest that holds the rest.
    """
    used: list[GpuNode] = []
    spare: list[GpuNode] = []
    for node in sorted(nodes, key=lambda each: -len(each.layout)):
        fits = len(node.layout) <= gpus
        (used if fits else spare).append(node)
        gpus -= len(node.layout) if fits else 0
    if gpus > 0 and spare:
        return [*used, min(spare, key=lambda each: len(each.layout))], 0
    return used, -(-gpus // per_node)


def _kept(
    geometries: MigGeometries, rest: Counts, nodes: Sequence[GpuNode], limit: int
) -> tuple[list[GpuNode], Counts]:
    """Return the nodes whose layout is kept, and what is left of the demand.

    A layout is worth the more, the less it wastes of the bounds that have the least room: nodes with the
    same supply are taken together, as many as the limit allows.
    """
    alike: dict[tuple[int, Counts], list[GpuNode]] = {}
    for node in nodes:
        alike.setdefault((len(node.layout), supply(node.layout)), []).append(node)
    room = [
        size * limit - sum(a * b for a, b in zip(covered, rest, strict=True)) + 1
        for size, covered in geometries.bounds
    ]

    def waste(kind: tuple[int, Counts]) -> float:
        gpus, given = kind
        useful = [min(pair) for pair in zip(given, rest, strict=True)]
        return sum(
            (size * gpus - sum(a * b for a, b in zip(covered, useful, strict=True))) / free / gpus
            for (size, covered), free in zip(geometries.bounds, room, strict=True)
        )

    kept: list[GpuNode] = []
    for gpus, given in sorted(alike, key=waste):
        same = alike[gpus, given]
        number = geometries.most(rest, given, limit, gpus, len(same))
        rest = less(rest, given, number)
        limit -= gpus * number
        kept += same[:number]
    return kept, rest


def _layouts(geometries: Counter[Counts], sizes: Sequence[int]) -> list[Layout]:
    """Return a layout for each node of these sizes; GPUs beyond the plan repeat its commonest geometry.

    The rarest geometry comes first on a node and the commonest fills it up (Walker's alias method): where
    nodes of one size are no fewer than the geometries, no node has more than two.
    """
    left = Counter(geometries)
    if left:
        left[max(left, key=lambda each: left[each])] += sum(sizes) - left.total()
    found = []
    for size in sizes:
        layout: list[Counts] = []
        while len(layout) < size:
            pick = max if layout else min
            geometry = pick(left, key=lambda each: left[each])
            number = min(size - len(layout), left[geometry])
            layout += [geometry] * number
            left[geometry] -= number
            left += Counter()  # drops what is used up
        found.append(in_order(layout))
    return found
