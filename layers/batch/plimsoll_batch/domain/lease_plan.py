"""Which nodes are leased to gangs now, and which given back.

A lease is a label and a taint on a Node, and nothing else remembers it. What is written follows from what
is read: a gang starts once exactly the nodes of its place are marked; nodes that are marked for a gang that
neither starts nor runs are given back. So a planner may die after any write.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from plimsoll.domain.kubernetes import INTERRUPTION, Node
from plimsoll_batch.domain.assembly import GangJobs
from plimsoll_batch.domain.decisions import Admitted
from plimsoll_batch.domain.gangs import Gang
from plimsoll_batch.domain.leases import by_lease, lease_of, taint_of
from plimsoll_batch.domain.names import LEASED_TO


@dataclass(frozen=True, slots=True, kw_only=True)
class Leasing:
    """What is to be written on one node."""

    node: Node
    gang: Gang | None
    """To whom it is leased; None: it is given back."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LeasePlan:
    """Leases to take and to give back."""

    writes: Sequence[Leasing] = ()
    not_yet: frozenset[str] = frozenset()
    """Uids of gangs that are not started before that is done."""


def plan_leases(
    admitted: Iterable[Admitted], gangs: Iterable[GangJobs], nodes: Sequence[Node]
) -> LeasePlan:
    """Decide which nodes are leased now, and which given back.

    A node with an open interruption is left alone: it goes, and its marks with it.

    Args:
        admitted: gangs that a plan would start.
        gangs: all of them.
        nodes: all of them.
    """
    wanted, leased = _wanted(admitted), by_lease(nodes)
    keeps = {jobs.gang.lease for jobs in gangs if jobs.admitted} if leased else set[str]()
    starting = {gang.lease: gang for gang in wanted.values()}
    writes: list[Leasing] = []
    not_yet: set[str] = set()
    for node in nodes:
        if INTERRUPTION in node.annotations:
            continue
        there, gang = lease_of(node), wanted.get(node.name)
        if gang is not None and not _is_marked(node, gang):
            not_yet.add(gang.uid)
            if there is None or there not in keeps:
                writes.append(Leasing(node=node, gang=gang))
        elif gang is None and there is not None and there not in keeps:
            writes.append(Leasing(node=node, gang=None))
            if there in starting:
                not_yet.add(starting[there].uid)
    return LeasePlan(writes=writes, not_yet=frozenset(not_yet))


def _wanted(admitted: Iterable[Admitted]) -> Mapping[str, Gang]:
    """Return for whom each node is to be leased."""
    return {
        name: each.gang
        for each in admitted
        if each.gang.shape.leases and each.place is not None
        for counts in each.place.nodes.values()
        for name in counts
    }


def _is_marked(node: Node, gang: Gang) -> bool:
    return node.labels.get(LEASED_TO) == gang.lease and taint_of(gang) in node.taints
