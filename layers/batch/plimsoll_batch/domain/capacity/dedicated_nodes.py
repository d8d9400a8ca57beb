"""Which nodes are leased to gangs now, and which given back.

A lease is a label on a Node, which the gang's pods select, and a taint, which keeps other pods away. Nothing else
remembers it, and each write follows from what is read: a gang starts once exactly the nodes of its place are
marked; nodes that are marked for a gang that neither starts nor runs are given back. So a planner may die after
any write.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

from plimsoll.domain.kubernetes import INTERRUPTION, Node, Resources, Taint, Toleration
from plimsoll_batch.domain.jobs import Gang, GangJobs, RunningGang
from plimsoll_batch.domain.names import LEASED_TO

EFFECT: Final = "NoSchedule"
"""It keeps pods from coming, and sends none away."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeLease:
    """What is to be written on one node."""

    node: Node
    gang: Gang | None
    """To whom it is leased; None: it is given back."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LeasePlan:
    """Leases to take and to give back."""

    writes: Sequence[NodeLease] = ()
    not_yet: frozenset[str] = frozenset()
    """Uids of gangs that are not started before that is done."""


def plan_leases(
    wanted: Mapping[str, Gang], gangs: Iterable[GangJobs], nodes: Sequence[Node]
) -> LeasePlan:
    """Decide which nodes are leased now, and which given back.

    A node with an open interruption is left alone: it goes, and its marks with it.

    Args:
        wanted: node -> the gang that a plan would start there, and that has it for itself.
        gangs: all of them.
        nodes: all of them.
    """
    leased = by_lease(nodes)
    keeps = {jobs.gang.lease for jobs in gangs if jobs.admitted} if leased else set[str]()
    starting = {gang.lease: gang for gang in wanted.values()}
    writes: list[NodeLease] = []
    not_yet: set[str] = set()
    for node in nodes:
        if INTERRUPTION in node.annotations:
            continue
        there, gang = lease_of(node), wanted.get(node.name)
        if gang is not None and not _is_marked(node, gang):
            not_yet.add(gang.uid)
            if there is None or there not in keeps:
                writes.append(NodeLease(node=node, gang=gang))
        elif gang is None and there is not None and there not in keeps:
            writes.append(NodeLease(node=node, gang=None))
            if there in starting:
                not_yet.add(starting[there].uid)
    return LeasePlan(writes=writes, not_yet=frozenset(not_yet))


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


def _is_marked(node: Node, gang: Gang) -> bool:
    return node.labels.get(LEASED_TO) == gang.lease and taint_of(gang) in node.taints
