"""The best node for a row of pods that are alike, without looking at every node for each of them.

Pods are placed by the thousand, workload after workload, and from one pod to the next only the node
changes that the last one took. So the nodes stand in one heap for each zone, and only those that
changed are looked at again. That is exact: `scoring` weighs a node's own pods of the owner against
those in its zone by how many nodes and zones there are, and within a zone no weight decides
anything; so the best of all is the best of the zones' firsts.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from heapq import heapify, heappop, heappush
from typing import NamedTuple

from plimsoll.domain.nodes import Node
from plimsoll.domain.pods import Pod, Ref, Scheduling
from plimsoll.domain.quantities import Resources
from plimsoll.domain.scoring import PeerCounts, left, shunned, weights

type Standing = tuple[bool, int, float, int]
"""Shunned, pods of the owner, shares that are free (negative), place in the order of nodes."""


class EquivalenceGroup(NamedTuple):
    """What pods have in common that choose alike."""

    scheduling: Scheduling
    owner: Ref | None
    closed: Collection[str]

    def same(self, other: EquivalenceGroup) -> bool:
        """Whether pods of one and of the other choose alike; the templates are one object then."""
        return (
            self.scheduling is other.scheduling
            and self.closed is other.closed
            and self.owner == other.owner
        )


class NodeRanking:
    """The nodes that pods of one template and owner fit on, while a snapshot changes."""

    def __init__(
        self,
        pod: Pod,
        nodes: Sequence[Node],
        *,
        fits: Callable[[str], bool],
        free: Mapping[str, Resources],
        peers: PeerCounts,
    ) -> None:
        """Rank nodes for pods like this one.

        Args:
            pod: the first of the row. It is not in the snapshot.
            nodes: those that may do; they stay as they are, or a new ranking is made.
            fits: whether the pods fit on a node by now.
            free: node -> what it has left; the snapshot's own, which changes.
            peers: the snapshot's own, which changes.
        """
        self._nodes = nodes
        self._order = {node.name: place for place, node in enumerate(nodes)}
        self._shunned = [shunned(pod, node) for node in nodes]
        self._fits, self._free = fits, free
        self._here, self._around = peers.of(pod)
        self._standing: dict[int, Standing] = {}
        self._heaps: dict[str | None, list[Standing]] = {}
        for place, node in enumerate(nodes):
            if fits(node.name):
                standing = self._standing[place] = self._look(place, node)
                self._heaps.setdefault(node.zone, []).append(standing)
        for heap in self._heaps.values():
            heapify(heap)

    def changed(self, name: str) -> None:
        """Look at a node again: a pod came to it or left it."""
        place = self._order.get(name)
        if place is None:
            return
        node = self._nodes[place]
        if not self._fits(name):
            self._standing.pop(place, None)
            return
        standing = self._look(place, node)
        if self._standing.get(place) != standing:
            self._standing[place] = standing
            heappush(self._heaps.setdefault(node.zone, []), standing)

    def first(self) -> Node | None:
        """Return the node that `scoring.best` would choose, None where none fits."""
        firsts = [(zone, first) for zone in self._heaps if (first := self._first_in(zone))]
        if not firsts:
            return None
        by_zone, by_host = weights(zones=len(firsts), nodes=len(self._standing))

        def rank(item: tuple[str | None, Standing]) -> tuple[bool, float, float, int]:
            zone, (avoided, here, minus_left, place) = item
            near = by_host * here + by_zone * self._around.get(zone or "", 0)
            return avoided, near, minus_left, place

        _, best = min(firsts, key=rank)
        return self._nodes[best[-1]]

    def _look(self, place: int, node: Node) -> Standing:
        here = self._here.get(node.name, 0)
        return self._shunned[place], here, -left(self._free[node.name], node.allocatable), place

    def _first_in(self, zone: str | None) -> Standing | None:
        """Return the best of a zone, and forget what stands before it but is no longer so."""
        heap = self._heaps[zone]
        while heap:
            if self._standing.get(heap[0][-1]) == heap[0]:
                return heap[0]
            heappop(heap)
        return None
