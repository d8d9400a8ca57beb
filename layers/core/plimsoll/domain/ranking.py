"""The best node for a row of pods that are alike, without looking at every node for each of them.

Pods are placed by the thousand, workload after workload, and from one pod to the next only the node
changes that the last one took. So the nodes stand in one heap for each zone and each value of the
labels that hard spread constraints count by, and only those that changed are looked at again. That is
exact: a spread constraint takes or refuses such a domain as a whole; and `scoring` weighs a node's own
pods of the owner against those in its zone by how many nodes and zones there are, and within a zone no
weight decides anything. So the best of all is the best of the firsts of the domains that are not refused.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from heapq import heapify, heappop, heappush
from typing import NamedTuple

from plimsoll.domain.nodes import Node
from plimsoll.domain.pods import Pod, Ref, Scheduling
from plimsoll.domain.quantities import Resources
from plimsoll.domain.scoring import PeerCounts, left, shunned, weights
from plimsoll.domain.topology_counts import FilterReason

type Domain = tuple[str | None, ...]
"""A zone, and the values of the labels that hard spread constraints count by."""
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
        keys = sorted({each.topology_key for each in pod.scheduling.spread if each.hard})
        self._domain: list[Domain] = [
            (node.zone, *(node.labels.get(key) for key in keys)) for node in nodes
        ]
        self._fits, self._free = fits, free
        self._here, self._around = peers.of(pod)
        self._standing: dict[int, Standing] = {}
        self._size: Counter[Domain] = Counter()
        """How many nodes of a domain the pods fit on."""
        self._heaps: dict[Domain, list[Standing]] = {}
        for place, node in enumerate(nodes):
            if fits(node.name):
                standing = self._standing[place] = self._look(place, node)
                self._heaps.setdefault(self._domain[place], []).append(standing)
        for domain, heap in self._heaps.items():
            self._size[domain] = len(heap)
            heapify(heap)

    def changed(self, name: str) -> None:
        """Look at a node again: a pod came to it or left it."""
        place = self._order.get(name)
        if place is None:
            return
        node, domain, before = self._nodes[place], self._domain[place], self._standing.get(place)
        if not self._fits(name):
            if self._standing.pop(place, None) is not None:
                self._size[domain] -= 1
            return
        standing = self._look(place, node)
        if before != standing:
            self._standing[place] = standing
            self._size[domain] += before is None
            heappush(self._heaps.setdefault(domain, []), standing)

    def first(self, refusals: Sequence[FilterReason] = ()) -> Node | None:
        """Return the node that `scoring.best` would choose, None where none fits.

        Args:
            refusals: what the pod's hard spread constraints demand of a node now.
        """
        firsts = [
            (domain, first)
            for domain in self._heaps
            if (first := self._first_in(domain)) is not None
            and not any(refuses(self._nodes[first[-1]]) for refuses in refusals)
        ]
        if not firsts:
            return None
        by_zone, by_host = weights(
            zones=len({zone for (zone, *_), _ in firsts}),
            nodes=sum(self._size[domain] for domain, _ in firsts),
        )

        def rank(item: tuple[Domain, Standing]) -> tuple[bool, float, float, int]:
            (zone, *_), (avoided, here, minus_left, place) = item
            near = by_host * here + by_zone * self._around.get(zone or "", 0)
            return avoided, near, minus_left, place

        _, best = min(firsts, key=rank)
        return self._nodes[best[-1]]

    def _look(self, place: int, node: Node) -> Standing:
        here = self._here.get(node.name, 0)
        return self._shunned[place], here, -left(self._free[node.name], node.allocatable), place

    def _first_in(self, domain: Domain) -> Standing | None:
        """Return the best of a domain, and forget what stands before it but is no longer so."""
        heap = self._heaps[domain]
        while heap:
            if self._standing.get(heap[0][-1]) == heap[0]:
                return heap[0]
            heappop(heap)
        return None
