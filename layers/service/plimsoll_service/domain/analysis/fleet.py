"""A fleet that is made for given pods: instances are opened until every pod has a place.

It is a heuristic, beside a bound that no packing is below: the optimum of the linear program in which pods may be
cut up. Its dual prices, one for processors and one for memory, say what an instance is worth to these pods; the
heuristic opens the instance that carries the most worth for each dollar, and then looks for cheaper ones.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass
from itertools import combinations, count
from math import ceil
from typing import Final

from plimsoll.domain.capacity import Daemons
from plimsoll.domain.kubernetes import Node, Pod, Resources, total_resources
from plimsoll.domain.scheduling import ClusterSnapshot
from plimsoll_service.domain.analysis.cluster_view import ON_DEMAND, SPOT, Together
from plimsoll_service.domain.analysis.consolidation import has_to_spare
from plimsoll_service.domain.analysis.time_limit import OutOfTime, TimeIsOver, never

FAMILIES: Final = 3
"""Spot instances are spread over so many families, as the spot groups of placement are."""
_ROUNDING: Final = 1e-9
_PAIRED: Final = 100
"""Pairs of more instances than this take longer to look at than they are worth."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Offer:
    """An instance that can be had any number of times."""

    type: str
    arch: str = "amd64"
    capacity: str
    """`on-demand` or `spot`."""
    whole: Resources
    """What it leaves to pods."""
    cpu: int
    """Millicores that it leaves to the items, less what stays free and what DaemonSets take."""
    memory: int
    pods: int
    hourly: float

    @property
    def family(self) -> str:
        """What is reclaimed together."""
        return self.type.partition(".")[0]


@dataclass(frozen=True, slots=True, kw_only=True)
class Worth:
    """What a millicore and a byte are worth."""

    cpu: float
    memory: float

    def of(self, cpu: int, memory: int) -> float:
        """Return what so much is worth."""
        return self.cpu * cpu + self.memory * memory


def worth_of(offers: Sequence[Offer], cpu: int, memory: int) -> Worth:
    """Return the dual prices of a demand: no offer is worth more than it costs.

    The optimum of a program with two prices lies where two offers cost exactly what they are worth, or
    where one does and the other price is 0.
    """
    found = [Worth(cpu=min((o.hourly / o.cpu for o in offers if o.cpu), default=0.0), memory=0.0)]
    found.append(
        Worth(cpu=0.0, memory=min((o.hourly / o.memory for o in offers if o.memory), default=0.0))
    )
    for one, other in combinations(offers, 2):
        area = one.cpu * other.memory - other.cpu * one.memory
        if area:
            found.append(
                Worth(
                    cpu=(one.hourly * other.memory - other.hourly * one.memory) / area,
                    memory=(other.hourly * one.cpu - one.hourly * other.cpu) / area,
                )
            )
    possible = [worth for worth in found if _within(worth, offers)]
    return max(
        possible, key=lambda worth: worth.of(cpu, memory), default=Worth(cpu=0.0, memory=0.0)
    )


def useful(offers: Iterable[Offer], *, families: int = 1) -> Sequence[Offer]:
    """Leave out what so many other families give as much of everything for, and cost no more."""
    kept: list[Offer] = []
    for offer in sorted(offers, key=lambda o: (o.hourly, -o.cpu, -o.memory, -o.pods, o.type)):
        better = {
            k.family
            for k in kept
            if k.cpu >= offer.cpu and k.memory >= offer.memory and k.pods >= offer.pods
        }
        if len(better) < families:
            kept.append(offer)
    return kept


def filled(offer: Offer, items: Iterable[tuple[int, int, int]], worth: Worth) -> float:
    """Return the worth of the items, in this order, that an empty instance takes.

    Args:
        offer: the instance.
        items: millicores, bytes, and how many of that size there are.
        worth: what they are worth.
    """
    cpu, memory, pods, value = offer.cpu, offer.memory, offer.pods, 0.0
    for one_cpu, one_memory, number in items:
        taken = min(
            number,
            pods,
            cpu // one_cpu if one_cpu else number,
            memory // one_memory if one_memory else number,
        )
        if taken > 0:
            cpu, memory, pods = cpu - taken * one_cpu, memory - taken * one_memory, pods - taken
            value += taken * worth.of(one_cpu, one_memory)
    return value


def _within(worth: Worth, offers: Sequence[Offer]) -> bool:
    return min(worth.cpu, worth.memory) >= 0 and all(
        worth.of(o.cpu, o.memory) <= o.hourly * (1 + _ROUNDING) for o in offers
    )


class Fleet:
    """Instances with their pods. A pod that must stand on on-demand is placed before those that need not."""

    def __init__(  # noqa: PLR0913 - what it starts from
        self,
        snapshot: ClusterSnapshot,
        together: Together,
        *,
        node_of: Callable[[Offer, str | None, str], Node],
        zones: Sequence[str | None],
        daemons: Daemons,
        worth: Worth,
        most_pods: int,
        out_of_time: OutOfTime = never,
    ) -> None:
        """Start with the nodes that stay what they are: they take no other pods.

        Args:
            snapshot: those nodes.
            together: their pods, counted.
            node_of: makes a node of an offer, a zone and a name.
            zones: where instances can be had.
            daemons: what every new node has to carry.
            worth: by which instances are compared.
            most_pods: on one instance, without those of DaemonSets.
            out_of_time: says when to give up.
        """
        self.snapshot = snapshot
        self._together = together
        self._node_of = node_of
        self._zones = Counter(dict.fromkeys(zones, 0))
        self._daemons = daemons
        self._worth = worth
        self._most_pods = most_pods
        self._out_of_time = out_of_time
        self._serial = count(1)
        self._fixed: set[str] = set()
        self._on: dict[str, dict[str, Pod]] = {}
        """Name of each new node -> its pods by uid, without those of DaemonSets."""
        self._worth_on: dict[str, float] = {}
        """What the pods of a new node are worth, until one comes or goes."""
        self._spot: Counter[str] = Counter()
        """New spot instances by family."""
        self.opened: dict[str, Offer] = {}
        """Name of each new node -> what it is."""
        self.stuck: list[Pod] = []
        """Pods that fit on nothing that is offered."""

    @property
    def hourly(self) -> float:
        """What the new instances cost."""
        return sum(offer.hourly for offer in self.opened.values())

    def place(self, pods: Sequence[Pod], offers: Sequence[Offer], *, on_spot: bool) -> None:
        """Give each pod a place, largest first: on what is open, else on a new instance.

        Raises:
            TimeIsOver: some have no place yet.
        """
        if not on_spot:
            self._fixed |= {pod.uid for pod in pods}
        rest = [pod for pod in sorted(pods, key=self._size) if not self._seat(pod)]
        while rest:
            if self._out_of_time():
                raise TimeIsOver
            if not self._open(rest, offers):
                self.stuck.append(rest.pop(0))
            rest = [pod for pod in rest if self.snapshot.where(pod) is None]

    def shrink(self, offers: Sequence[Offer]) -> None:
        """Close instances whose pods fit on others, and put cheaper ones in the place of one or two, while there is time."""
        for name in sorted(self.opened, key=lambda name: (self._used(name), name)):
            if not self._out_of_time():
                self._close(name)
        for name in list(self.opened):
            if not self._out_of_time():
                self._cheapen([name], offers)
        while len(self.opened) <= _PAIRED and any(
            self._cheapen(pair, offers)
            for pair in combinations(sorted(self.opened), 2)
            if self.opened[pair[0]].capacity == self.opened[pair[1]].capacity
            and not self._out_of_time()
        ):
            pass

    def _size(self, pod: Pod) -> tuple[float, str]:
        need = pod.scheduling.requests
        return -self._worth.of(need.cpu, need.memory), pod.uid

    def _used(self, name: str) -> float:
        if name not in self._worth_on:
            worths = (-self._size(pod)[0] for pod in self.snapshot.on(name))
            self._worth_on[name] = sum(worths)
        return self._worth_on[name]

    def _pods(self, name: str) -> list[Pod]:
        """Return the pods of a new node, without those of DaemonSets."""
        return list(self._on[name].values())

    def _put(self, pod: Pod, node: Node) -> None:
        self.snapshot.place(pod, node.name)
        self._together.take(pod, node)
        self._on[node.name][pod.uid] = pod
        self._worth_on.pop(node.name, None)

    def _take_off(self, pod: Pod, node: Node) -> None:
        self.snapshot.remove(pod)
        self._together.take(pod, node, -1)
        self._on[node.name].pop(pod.uid, None)
        self._worth_on.pop(node.name, None)

    def _takes(self, node: Node, pod: Pod) -> bool:
        """Whether a new node may have a pod, but for the predicates."""
        if pod.uid in self._fixed and self.opened[node.name].capacity == SPOT:
            return False
        if len(self._on[node.name]) >= self._most_pods:
            return False
        free = self.snapshot.free(node.name)
        return has_to_spare(
            pod.scheduling.requests, node.allocatable, free
        ) and self._together.allows(pod, node)

    def _seat(self, pod: Pod, closed: Collection[str] = ()) -> bool:
        need, snapshot = pod.scheduling.requests, self.snapshot
        possible = [
            snapshot.nodes[name]
            for name in self.opened
            if name not in closed
            and need.cpu <= (free := snapshot.free(name)).cpu
            and need.memory <= free.memory
            and self._takes(snapshot.nodes[name], pod)
        ]
        possible.sort(key=lambda node: (-self._used(node.name), node.name))
        node = snapshot.first(pod, possible)
        if node is None:
            return False
        self._put(pod, node)
        return True

    def _open(self, rest: Sequence[Pod], offers: Sequence[Offer]) -> bool:
        """Open the instance that carries the most worth for its price. False: none takes any pod."""
        sizes: Counter[tuple[int, int]] = Counter()
        for pod in rest:
            sizes[pod.scheduling.requests.cpu, pod.scheduling.requests.memory] += 1
        items = [(cpu, memory, number) for (cpu, memory), number in sizes.items()]
        best = sorted(
            (o for o in offers if self._may_have(o)),
            key=lambda o: (-filled(o, items, self._worth) / o.hourly, o.type, o.capacity),
        )
        return any(
            self._fill(offer, zone, rest)
            for offer in best
            for zone in sorted(self._zones, key=lambda z: (self._zones[z], z or ""))
        )

    def _may_have(self, offer: Offer) -> bool:
        """Whether one more of its family leaves spot spread over families."""
        if offer.capacity == ON_DEMAND:
            return True
        return self._spot[offer.family] < ceil((self._spot.total() + 1) / FAMILIES)

    def _fill(self, offer: Offer, zone: str | None, pods: Sequence[Pod]) -> bool:
        node = self._node_of(offer, zone, f"new-{next(self._serial)}")
        self._add(offer, node)
        refused: set[int] = set()
        for pod in pods:
            template = id(pod.scheduling)  # of one workload, and of one size
            if template in refused:
                continue
            if self._takes(node, pod) and self.snapshot.why_not(pod, node) is None:
                self._put(pod, node)
            else:  # the node only gets fuller
                refused.add(template)
        if self._on[node.name]:
            return True
        self._drop(node)
        return False

    def _add(self, offer: Offer, node: Node) -> None:
        self.snapshot.add_node(node)
        for daemon in self._daemons.on(node):
            self.snapshot.place(daemon, node.name)
        self.opened[node.name] = offer
        self._on[node.name] = {}
        self._zones[node.zone] += 1
        if offer.capacity == SPOT:
            self._spot[offer.family] += 1

    def _drop(self, node: Node) -> None:
        self.snapshot.remove_node(node.name)
        offer = self.opened.pop(node.name)
        del self._on[node.name]
        self._worth_on.pop(node.name, None)
        self._zones[node.zone] -= 1
        if offer.capacity == SPOT:
            self._spot[offer.family] -= 1

    def _close(self, name: str) -> None:
        node, pods = self.snapshot.nodes[name], self._pods(name)
        for pod in pods:
            self._take_off(pod, node)
            if not self._seat(pod, closed={name}):
                break
        else:
            self._drop(node)
            return
        self._restore(node, pods)

    def _cheapen(self, names: Sequence[str], offers: Sequence[Offer]) -> bool:
        """Put one instance in the place of some of one capacity, where a cheaper one takes their pods."""
        nodes = [(self.opened[name], self.snapshot.nodes[name], self._pods(name)) for name in names]
        first, zone = nodes[0][0], nodes[0][1].zone
        pods = sorted((pod for _, _, its in nodes for pod in its), key=self._size)
        need = total_resources([pod.scheduling.requests for pod in pods])
        cheaper = [
            offer
            for offer in offers
            if offer.hourly < sum(each.hourly for each, _, _ in nodes) * (1 - _ROUNDING)
            and offer.capacity == first.capacity
            and (need.cpu <= offer.cpu and need.memory <= offer.memory and len(pods) <= offer.pods)
        ]
        if not cheaper:
            return False
        for _, node, its in nodes:
            for pod in its:
                self._take_off(pod, node)
            self._drop(node)
        for offer in sorted(cheaper, key=lambda o: (o.hourly, o.type)):
            if self._may_have(offer) and self._holds(offer, zone, pods):
                return True
        for offer, node, its in nodes:
            self._add(offer, node)
            self._restore(node, its)
        return False

    def _holds(self, offer: Offer, zone: str | None, pods: Sequence[Pod]) -> bool:
        """Open an instance for all of these pods; where one does not fit, nothing is changed."""
        node = self._node_of(offer, zone, f"new-{next(self._serial)}")
        self._add(offer, node)
        for pod in pods:
            if not self._takes(node, pod) or self.snapshot.why_not(pod, node):
                for each in self._pods(node.name):
                    self._take_off(each, node)
                self._drop(node)
                return False
            self._put(pod, node)
        return True

    def _restore(self, node: Node, pods: Sequence[Pod]) -> None:
        """Put the pods of a node back to it, wherever they stand now."""
        for pod in pods:
            there = self.snapshot.where(pod)
            if there is not None:
                self._take_off(pod, self.snapshot.nodes[there])
            self._put(pod, node)
