"""What marks a node that is leased to a gang: a label that its pods select, and a taint that keeps others away."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Final

from plimsoll.domain.kubernetes import Node, Resources, Taint, Toleration
from plimsoll_batch.domain.gangs import Gang, RunningGang
from plimsoll_batch.domain.names import LEASED_TO

EFFECT: Final = "NoSchedule"
"""It keeps pods from coming, and sends none away."""


def lease_of(node: Node) -> str | None:
    """Return to whom a node is leased, by whichever of its two marks is there."""
    if LEASED_TO in node.labels:
        return node.labels[LEASED_TO]
    return next((taint.value for taint in node.taints if taint.key == LEASED_TO), None)


def taint_of(gang: Gang) -> Taint:
    """Return what keeps others from the nodes of a gang."""
    return Taint(key=LEASED_TO, value=gang.lease, effect=EFFECT)


def toleration_of(gang: Gang) -> Toleration:
    """Return what lets its own pods come."""
    return Toleration(key=LEASED_TO, operator="Equal", value=gang.lease, effect=EFFECT)


def unmarked(node: Node) -> Node:
    """Return a node without the taint of a lease, as a plan sees it: what runs there counts as all of it."""
    if not any(taint.key == LEASED_TO for taint in node.taints):
        return node
    return replace(node, taints=tuple(t for t in node.taints if t.key != LEASED_TO))


def by_lease(nodes: Iterable[Node]) -> Mapping[str, Sequence[Node]]:
    """Return the nodes that are leased, by to whom."""
    found: defaultdict[str, list[Node]] = defaultdict(list)
    for node in nodes:
        if (lease := lease_of(node)) is not None:
            found[lease].append(node)
    return found


def with_whole_nodes(
    running: RunningGang, leased: Mapping[str, Sequence[Node]], sums: Mapping[str, Resources]
) -> RunningGang:
    """Return a gang as it takes all of the nodes that are leased to it, but what stands there besides."""
    mine = leased.get(running.gang.lease, ()) if leased else ()
    if not mine:
        return running
    whole = {n.name: n.allocatable - sums.get(n.name, Resources()) for n in mine}
    return replace(running, on_nodes={**running.on_nodes, **whole})
