"""The best node for a pod, without looking at every node for each of them.

Pods are placed by the thousand, and from one to the next only the node changes that the last one took.
So nodes are kept in the order of what is left on them, for all templates to which the same nodes are
open, and apart from them only the few that hold pods of the same owner. In order they stand in each
zone and for each value of the labels that hard spread constraints count by.

That is exact: a spread constraint takes or refuses such a domain as a whole; and `scoring` weighs a
node's own pods of the owner against those in its zone by how many nodes and zones there are, and within
a zone no weight decides anything. So the best of all is the best of the firsts of the domains that are
not refused, and mostly it is so by any weight.

A domain in which pods found no node is not looked through again for pods that ask for the same: only nodes that
changed since may take one.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from copy import copy
from heapq import heappop, heappush
from typing import Final, NamedTuple, Self

from plimsoll.domain.kubernetes import Node, NodeRequirements, Ref, Resources, Scheduling
from plimsoll.domain.scheduling.scoring import weights
from plimsoll.domain.scheduling.topology_counts import FilterReason

type Domain = tuple[str | None, ...]
"""A zone, and the values of the labels that hard spread constraints count by."""
type Spare = tuple[bool, float, int, str]
"""Shunned, shares that are free (negative), place in the order of nodes, name."""
type Look = Callable[[str], tuple[Domain, Spare] | None]
"""Returns where a node stands now; None where it is not open to the templates of an order."""

MOST_CHANGES: Final = 10_000
"""So many changes are remembered for domains that were full; then these are looked through again."""


class NodeRank(NamedTuple):
    """Where a node stands among those of its domain: the least is the best."""

    shunned: bool
    here: int
    """Pods of the owner."""
    minus_left: float
    place: int
    name: str


class EquivalenceGroup(NamedTuple):
    """What pods have in common that choose alike."""

    scheduling: Scheduling
    volumes: NodeRequirements
    owner: Ref | None
    closed: Collection[str]

    def same(self, other: EquivalenceGroup) -> bool:
        """Whether pods of one and of the other choose alike; the templates are one object then."""
        return (
            self.scheduling is other.scheduling
            and self.closed is other.closed
            and self.volumes == other.volumes
            and self.owner == other.owner
        )


class NodeOrder:
    """The nodes that are open to some templates, by domain, in the order of what is left on them."""

    def __init__(self, names: Iterable[str]) -> None:
        """Begin with the nodes that may be open."""
        self._stale = set(names)
        self._known: dict[str, tuple[Domain, Spare]] = {}
        self._sorted: dict[Domain, list[Spare]] = {}
        self._full: dict[tuple[Domain, Resources], tuple[int, AbstractSet[str]]] = {}
        """Domain, and what pods ask for that found no node there -> how many changes were looked at since, and
        which nodes take such pods now."""
        self._changes: list[str] = []

    def changed(self, name: str) -> None:
        """Look at a node again: it came or went, or a pod came to it or left it."""
        self._stale.add(name)
        if self._full:
            self._changes.append(name)
            if len(self._changes) > MOST_CHANGES:
                self._full.clear()
                self._changes.clear()

    def by_domain(self, look: Look) -> Mapping[Domain, Sequence[Spare]]:
        """Return the nodes of each domain, those with the most left first."""
        for name in self._stale:
            before, now = self._known.pop(name, None), look(name)
            if before is not None:
                spares = self._sorted[before[0]]
                del spares[bisect_left(spares, before[1])]
            if now is not None:
                self._known[name] = now
                insort(self._sorted.setdefault(now[0], []), now[1])
        self._stale.clear()
        return self._sorted

    def of(self, name: str) -> tuple[Domain, Spare] | None:
        """Return where a node stood when `by_domain` was asked last."""
        return self._known.get(name)

    def note_full(self, domain: Domain, requests: Resources) -> None:
        """Remember that no node of a domain takes a pod that asks for this."""
        self._full[domain, requests] = len(self._changes), frozenset()

    def freed(
        self, domain: Domain, requests: Resources, fits: Callable[[str], bool]
    ) -> Sequence[Spare] | None:
        """Return all nodes of a domain that take such pods now; None where it was not full for them.

        `by_domain` has to be asked before.
        """
        key = domain, requests
        if key not in self._full:
            return None
        seen, names = self._full[key]
        open_now = {
            name: known[1]
            for name in {*names, *self._changes[seen:]}
            if (known := self._known.get(name)) is not None and known[0] == domain and fits(name)
        }
        self._full[key] = len(self._changes), open_now.keys()
        return [*open_now.values()]

    def copy(self) -> Self:
        """Return an order for a copy of the snapshot, which goes on by itself."""
        twin = copy(self)
        twin._part()  # noqa: SLF001 - it is of this class
        return twin

    def _part(self) -> None:
        self._stale, self._known = self._stale.copy(), self._known.copy()
        self._sorted = {domain: spares.copy() for domain, spares in self._sorted.items()}
        self._full, self._changes = self._full.copy(), self._changes.copy()


class NodeRanking:
    """The nodes of an order that pods of one template and owner fit on, while a snapshot changes."""

    def __init__(  # noqa: PLR0913 - what a snapshot knows, each part named
        self,
        order: NodeOrder,
        requests: Resources,
        *,
        look: Look,
        nodes: Mapping[str, Node],
        fits: Callable[[str], bool],
        here: Mapping[str, int],
        around: Mapping[str, int],
    ) -> None:
        """Rank nodes for pods of a template. All of it is the snapshot's own, which changes.

        Args:
            order: the nodes that are open to the template.
            requests: what each pod asks for.
            look: where a node of the order stands now.
            nodes: all nodes, by name.
            fits: whether the pods fit on a node by now.
            here: node -> pods of their owner.
            around: zone -> pods of their owner.
        """
        self._order, self._requests, self._look = order, requests, look
        self._nodes, self._fits = nodes, fits
        self._here, self._around = here, around
        self._stale = {name for name, count in here.items() if count}
        self._peers: dict[str, NodeRank] = {}
        """Nodes with pods of the owner."""
        self._heaps: dict[Domain, list[NodeRank]] = {}

    def changed(self, name: str) -> None:
        """Look at a node again: a pod came to it or left it."""
        self._stale.add(name)

    def first(self, refusals: Sequence[FilterReason]) -> Node | None:
        """Return the node that `scoring.best` would choose, None where none fits.

        Args:
            refusals: what the pod's hard spread constraints demand of a node now.
        """
        order = self._order.by_domain(self._look)
        self._refresh()
        firsts = {
            domain: first
            for domain, spares in order.items()
            if (first := self._first_in(domain, spares)) is not None
            and not any(refuses(self._nodes[first.name]) for refuses in refusals)
        }
        if not firsts:
            return None
        zone_of = {first: self._around.get(domain[0] or "", 0) for domain, first in firsts.items()}
        # Usually any weight gives the same node. The weights need a look at all nodes,
        # so they are computed only if a zone with fewer pods of the owner competes.
        best = min(zone_of, key=lambda s: (s.shunned, s.here, zone_of[s], s.minus_left, s.place))
        if any(s.shunned == best.shunned and zone_of[s] < zone_of[best] for s in zone_of):
            by_zone, by_host = weights(
                zones=len({zone for zone, *_ in firsts}),
                nodes=sum(self._fits(name) for domain in firsts for *_, name in order[domain]),
            )

            def rank(s: NodeRank) -> tuple[bool, float, float, int]:
                near = by_host * s.here + by_zone * zone_of[s]
                return s.shunned, near, s.minus_left, s.place

            best = min(zone_of, key=rank)
        return self._nodes[best.name]

    def _refresh(self) -> None:
        for name in self._stale:
            known, here = self._order.of(name), self._here.get(name, 0)
            if known is None or not here:
                self._peers.pop(name, None)
                continue
            domain, (shunned, minus_left, place, _) = known
            ranked = NodeRank(shunned, here, minus_left, place, name)
            if self._peers.get(name) != ranked:
                self._peers[name] = ranked
                heappush(self._heaps.setdefault(domain, []), ranked)
        self._stale.clear()

    def _first_in(self, domain: Domain, spares: Sequence[Spare]) -> NodeRank | None:
        """Return the best of a domain: of its nodes without pods of the owner, or of the others."""
        freed = self._order.freed(domain, self._requests, self._fits)
        if freed is not None:
            others = (each for each in sorted(freed) if not self._here.get(each[-1]))
        else:
            others = (e for e in spares if not self._here.get(e[-1]) and self._fits(e[-1]))
        spare, peer = next(others, None), self._first_peer(domain)
        if spare is None:
            if peer is None and freed is None:
                self._order.note_full(domain, self._requests)
            return peer
        shunned, minus_left, place, name = spare
        first = NodeRank(shunned, 0, minus_left, place, name)
        return first if peer is None else min(first, peer)

    def _first_peer(self, domain: Domain) -> NodeRank | None:
        """Return the best with pods of the owner, and forget what stands before it but is not so now."""
        heap = self._heaps.get(domain, [])
        while heap:
            first = heap[0]
            if self._peers.get(first.name) == first:
                if self._fits(first.name):
                    return first
                del self._peers[first.name]  # until a pod leaves it
            heappop(heap)
        return None
