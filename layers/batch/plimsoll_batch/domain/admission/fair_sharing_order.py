"""Which queue is admitted next, kept up to date while usage changes.

Each cohort compares the candidates of its children, and sends the first of them up. What a child is
compared by depends on its own subtree only, so that an admission changes nothing but the path above its
queue: with heaps that costs the depth of the tree, and the drain loop admits thousands in one plan.

Trees share nodes but no quota: among trees priority decides, then age.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from heapq import heappop, heappush

from plimsoll_batch.domain.jobs import Gang
from plimsoll_batch.domain.quota import Assignment, Order, QuotaNode, Shares

type Rank = tuple[object, ...]
type Age = tuple[tuple[bool, datetime, int], int, datetime, str]
"""Its turn, minus its priority, since when, uid: the least is first."""

FLAT = frozenset({Order.PRIORITY, Order.DRF})
"""Orders that compare all queues of a tree with each other."""


@dataclass(frozen=True, slots=True, eq=False)
class Candidate:
    """The head of a queue, with the flavors it would get."""

    queue: QuotaNode
    gang: Gang
    assignment: Assignment


def age_of(gang: Gang) -> Age:
    """Return what gangs of one queue are ordered by."""
    return gang.turn, -gang.priority, gang.since, gang.uid


class FairSharingOrder:
    """The heads of all queues, in the order of their trees."""

    def __init__(self, shares: Mapping[Order, Shares]) -> None:
        """Begin without candidates; `shares` has the measure of each order but that by priority."""
        self._shares = shares
        self._entries: dict[QuotaNode | None, dict[QuotaNode, tuple[Rank, Candidate]]] = {None: {}}
        self._heaps: dict[QuotaNode | None, list[tuple[Rank, int, QuotaNode]]] = {None: []}

    def enter(self, queue: QuotaNode, candidate: Candidate | None) -> None:
        """Set a queue's candidate, and compare anew whatever changed in its path."""
        child, found = queue, candidate
        for above in _levels(queue):
            entries = self._entries.setdefault(above, {})
            heap = self._heaps.setdefault(above, [])
            if found is None:
                entries.pop(child, None)
            else:
                rank = self._rank(above, child, found)
                entries[child] = (rank, found)
                heappush(heap, (rank, child.number, child))
            found = _first(entries, heap)
            if above is None:
                return
            child = above

    def first(self) -> Candidate | None:
        """Return the next candidate; None where there is none."""
        return _first(self._entries[None], self._heaps[None])

    def rank(self, candidate: Candidate) -> Sequence[Rank]:
        """Return what a candidate is compared by at each level now."""
        found, child = [], candidate.queue
        for above in _levels(candidate.queue):
            found.append(self._rank(above, child, candidate))
            child = above or child
        return found

    def _rank(self, above: QuotaNode | None, child: QuotaNode, candidate: Candidate) -> Rank:
        gang = candidate.gang
        age = age_of(gang)
        if above is None:
            return age
        if child.order is Order.PRIORITY:
            return age[0], candidate.assignment.height, *age
        amounts = candidate.assignment.amounts
        candidate.queue.add_all(amounts)
        share = self._shares[child.order].of(child)
        borrows = child.order is Order.DOMINANT_RESOURCE_SHARE and any(
            child.borrows(i) for i, _ in amounts
        )
        candidate.queue.remove_all(amounts)
        return age[0], borrows, share, *age


def _levels(queue: QuotaNode) -> list[QuotaNode | None]:
    """Return where a queue's candidate is compared: in each cohort above it, or in the root alone."""
    above = [node for node in queue.path() if node is not queue]
    if queue.order in FLAT:
        above = above[-1:]
    return [*above, None]


def _first(
    entries: dict[QuotaNode, tuple[Rank, Candidate]], heap: list[tuple[Rank, int, QuotaNode]]
) -> Candidate | None:
    """Return the first of the candidates, and forget what was entered before them and is so no longer."""
    while heap:
        rank, _, child = heap[0]
        entry = entries.get(child)
        if entry is not None and entry[0] == rank:
            return entry[1]
        heappop(heap)
    return None
