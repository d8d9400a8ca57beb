"""Whether a place is sure while several pods ask for one, and nobody knows who is asked first.

A plan assigns places in one order; kube-scheduler takes another, and its own choice of nodes. So a
pod that leaves and counts on a place has it for sure only when all the others that may come before
it, however they are placed, cannot fill every node that it fits on. That is answered by counting,
on the safe side: each of the others that fit on one of these nodes is taken to be as large as the
largest of them, and to go where it does the most harm. In doubt the answer is no, and a second later they have their places.

Pods that make way at once (`plimsoll.domain.scheduling.preemption`) take no place from a pod that would preempt them,
neither where they stand nor where they ask for one.

Not looked at: that others of its kind may come to stand where its spread constraints forbid it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import reduce
from itertools import compress
from operator import or_
from typing import NamedTuple

from plimsoll.domain.kubernetes import Pod, Resources, Scheduling
from plimsoll.domain.scheduling.cluster_snapshot import ClusterSnapshot


@dataclass(slots=True)
class _Contenders:
    """Pods that may come to stand on one of the nodes that a pod fits on."""

    count: int = 0
    largest: Resources = field(default_factory=Resources)

    def add(self, largest: Resources, count: int) -> None:
        self.count += count
        self.largest = self.largest.larger(largest)


@dataclass(frozen=True, slots=True)
class _Need:
    """What decides who can take the place of a pod. Pods of many templates have the same."""

    nodes: int
    """A bit for each node that it fits on."""
    requests: Resources
    picky: bool
    """Whether one pod may be enough to spoil a node for it, however small."""
    preempts: bool
    """Whether it counts on places where others make way."""

    def loses_to(self, other: _Seeker) -> bool:
        """Whether another pod may come to stand where this one would."""
        return bool(self.nodes & other.nodes) and not (self.preempts and other.yields)


class _Seeker(NamedTuple):
    """What decides whose place a pod may take."""

    nodes: int
    yields: bool


class Contention:
    """Pods that ask for a place at about the same time, and those to whom one was promised."""

    def __init__(self, snapshot: ClusterSnapshot, closed: frozenset[str] = frozenset()) -> None:
        """Begin with nobody.

        Args:
            snapshot: only pods that are bound stand on it; it is not changed, nor may it change.
            closed: nodes that are no place for anybody, whatever it tolerates.
        """
        self._snapshot = snapshot
        self._closed = closed
        self._bits = {name: 1 << n for n, name in enumerate(snapshot.nodes)}
        self._joined: dict[_Seeker, _Contenders] = {}
        self._promised: dict[_Need, _Contenders] = {}
        self._kept: Counter[_Need] = Counter()
        # By the identity of their scheduling: those of one template fit on the same nodes.
        self._known: dict[tuple[int, bool], tuple[Scheduling, _Need]] = {}
        self._open: dict[Hashable, int] = {}
        self._domains: dict[str, dict[str, int]] = {}
        self._strong: dict[tuple[_Need, Resources], int] = {}

    def join(self, pod: Pod, count: int = 1) -> None:
        """Add pods that ask for a place at any moment."""
        if count <= 0:
            return
        need, seeker = self._need(pod), self._seeker(pod)
        self._joined.setdefault(seeker, _Contenders()).add(need.requests, count)
        for one, contenders in self._promised.items():
            if one.loses_to(seeker):
                contenders.add(need.requests, count)

    def promise(self, pod: Pod) -> None:
        """Add a pod that left, or leaves now, and needs a place; its old one is not counted."""
        need = self._need(pod)
        if need not in self._promised and need.nodes:
            self._promised[need] = self._contenders(need)
        self._kept[need] = max(0, self._kept[need] - 1)
        self.join(pod)

    def keep(self, pod: Pod) -> None:
        """Keep a place for a pod that leaves later: `promise` ends that."""
        self._kept[self._need(pod)] += 1

    def holds(self, pod: Pod) -> bool:
        """Whether a pod may leave now: it, and all with a promise, have a place for sure."""
        need = self._need(pod)
        contenders = self._contenders(need)
        contenders.add(need.requests, 1)
        return self._strength(need, contenders.largest) >= contenders.count and all(
            spare >= 1 for spare in (*self._spares(pod), *self._spares_kept(pod))
        )

    def spares(self, pod: Pod, wanted: int) -> int:
        """Return how many pods like this one may be made beside the promises and the places that are kept, at most `wanted`."""
        return max(0, min((*self._spares(pod), *self._spares_kept(pod), wanted)))

    def _spares(self, pod: Pod) -> Iterator[int]:
        """Yield for each promise how many such pods may come beside its contenders."""
        need, seeker = self._need(pod), self._seeker(pod)
        for one, contenders in self._promised.items():
            if one.loses_to(seeker):
                yield (
                    self._strength(one, contenders.largest.larger(need.requests)) - contenders.count
                )

    def _spares_kept(self, pod: Pod) -> Iterator[int]:
        """Yield for each place that is kept for pods of another kind how many such pods may come beside it."""
        need, seeker = self._need(pod), self._seeker(pod)
        for one, count in self._kept.items():
            if count and one != need and one.loses_to(seeker):
                contenders = self._contenders(one)
                contenders.add(
                    need.requests if count == 1 else need.requests.larger(one.requests), count
                )
                yield self._strength(one, contenders.largest) - contenders.count

    def _contenders(self, need: _Need) -> _Contenders:
        """Return those that fit on one of its nodes: who never comes to a node takes no place there."""
        found = _Contenders()
        for seeker, joined in self._joined.items():
            if need.loses_to(seeker):
                found.add(joined.largest, joined.count)
        return found

    def _strength(self, need: _Need, largest: Resources) -> int:
        """Return how many others it takes at least to fill every node that a pod fits on."""
        if need.picky:
            return need.nodes.bit_count()
        key = need, largest
        if key not in self._strong:
            snapshot = self._snapshot.without_yielding if need.preempts else self._snapshot
            here = compress(self._bits, map("1".__eq__, reversed(f"{need.nodes:b}")))
            self._strong[key] = sum(
                _until_full(need.requests, snapshot.free(name), largest) for name in here
            )
        return self._strong[key]

    def _need(self, pod: Pod) -> _Need:
        # A pod of a PodGroup may take a place, though nobody counts on one for it alone.
        pod = pod if pod.group is None else replace(pod, group=None)
        scheduling, preempts = pod.scheduling, self._snapshot.preempts(pod)
        known = self._known.get((id(scheduling), preempts))
        if known is None:
            need = _Need(self._nodes(pod), scheduling.requests, _picky(scheduling), preempts)
            known = self._known[id(scheduling), preempts] = (scheduling, need)
        return known[1]

    def _seeker(self, pod: Pod) -> _Seeker:
        return _Seeker(self._need(pod).nodes, self._snapshot.yields(pod))

    def _nodes(self, pod: Pod) -> int:
        """Return the nodes that a pod fits on, found once for all templates to which the same are open."""
        snapshot = self._snapshot.open_to(pod)
        where = snapshot.where(pod)
        alike = snapshot.alike(pod) if where is None or where in self._closed else None
        if alike is None:
            return self._fitting(pod)
        key = alike, self._snapshot.preempts(pod)
        if key not in self._open:
            anywhere = replace(pod.scheduling, spread=())
            self._open[key] = self._fitting(replace(pod, scheduling=anywhere))
        nodes = self._open[key]
        for spread in snapshot.spread_filters(pod):
            domains = self._nodes_by_domain(spread.key)
            nodes &= reduce(
                or_, (domains[domain] for domain in domains if spread.admits(domain)), 0
            )
        return nodes

    def _fitting(self, pod: Pod) -> int:
        fitting = self._snapshot.open_to(pod).candidates(pod)
        names = {node.name for node in fitting} - self._closed
        return sum(self._bits[name] for name in names)

    def _nodes_by_domain(self, topology_key: str) -> Mapping[str, int]:
        """Return the nodes of each domain, as bits, without those that are no place for anybody."""
        known = self._domains.get(topology_key)
        if known is None:
            known = self._domains[topology_key] = {}
            for name, node in self._snapshot.nodes.items():
                domain = node.labels.get(topology_key)
                if domain is not None and name not in self._closed:
                    known[domain] = known.get(domain, 0) | self._bits[name]
        return known


def _picky(scheduling: Scheduling) -> bool:
    """Whether one pod may be enough to spoil a node for it, however small."""
    return bool(scheduling.host_ports or scheduling.affinity or scheduling.anti_affinity)


def _until_full(need: Resources, free: Resources, largest: Resources) -> int:
    """Return how many of the largest it takes on a node until one who needs this much is shut out.

    What it does not ask for cannot shut it out.
    """
    have, take = dict(free.extended), dict(largest.extended)
    amounts = [
        (need.cpu, free.cpu, largest.cpu),
        (need.memory, free.memory, largest.memory),
        (need.pods, free.pods, largest.pods),
        *((amount, have.get(name, 0), take.get(name, 0)) for name, amount in need.extended),
    ]
    return 1 + min((left - asked) // each for asked, left, each in amounts if asked and each)
