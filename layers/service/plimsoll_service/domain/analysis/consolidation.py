"""Nodes that the cluster can do without: their pods fit on others, or they have none.

The nodes are found one after another, each in a cluster without those found before, and a node that
takes the pods of another stays. So any of them can be consolidated, in any order, as long as the
cluster stays as it was seen.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Final

from plimsoll.domain.kubernetes import (
    INSTANCE_TYPE,
    Node,
    OwnerKind,
    Pod,
    Resources,
    total_resources,
    why_never,
    why_node_protected,
)
from plimsoll.domain.scheduling import ClusterSnapshot
from plimsoll_service.domain.analysis.cluster_view import ON_DEMAND, Together, View, amounts
from plimsoll_service.domain.analysis.prices import PriceTable
from plimsoll_service.domain.analysis.time_limit import OutOfTime, never
from plimsoll_service.wire import snapshot as wire

SPARE: Final = 0.1
"""The share of each node that stays free, for replacements and for rollouts."""
SETTLED: Final = timedelta(minutes=15)
"""A younger node may still be waiting for the pods it was launched for."""
LEAST_NODES: Final = 2
"""So many stay: with fewer, an interruption leaves no place for replacements."""
CONTROL_PLANE: Final = "node-role.kubernetes.io/control-plane"


@dataclass(frozen=True, slots=True, kw_only=True)
class Consolidation:
    """A node that can go, and where its pods would."""

    node: wire.Node
    pods: tuple[wire.Pod, ...]
    """Those that have to leave."""
    destinations: tuple[str, ...]
    """The names of the nodes that take them, one for each pod."""
    monthly: float
    """What the node costs."""

    @property
    def idle(self) -> bool:
        """Whether nothing has to leave."""
        return not self.pods


@dataclass(frozen=True, slots=True, kw_only=True)
class Consolidations:
    """What can go, and of the other nodes why not."""

    found: tuple[Consolidation, ...]
    kept: Mapping[str, str]
    """Name of a node -> why it stays, in words."""
    unreached: frozenset[str] = frozenset()
    """Names of the nodes that the time did not suffice for."""


def consolidations(view: View, table: PriceTable, out_of_time: OutOfTime = never) -> Consolidations:
    """Return the nodes that can go, those with the least on them first."""
    standing = view.standing()
    together = Together(view)
    for node in standing.nodes.values():
        for pod in standing.on(node.name):
            together.take(pod, node)
    found: list[Consolidation] = []
    kept: dict[str, str] = {}
    taken: set[str] = set()
    unreached: set[str] = set()
    used = {told.uid: _used(standing, told.name) for told in view.seen.nodes}
    destinations = _Destinations(standing)
    staying = sum(node.staying for node in standing.nodes.values())
    for told in sorted(view.seen.nodes, key=lambda n: (used[n.uid], n.name)):
        if out_of_time():
            unreached.add(told.name)
            continue
        leaving = [pod for pod in view.on_node[told.name] if view.leaves(pod)]
        why = _why_kept(view, told, leaving) or _unpriced(told, table)
        if told.name in taken:
            why = "it takes the pods of another"
        elif why is None and staying <= LEAST_NODES:
            why = f"it is one of the last {LEAST_NODES} nodes"
        moved = None if why else _moved(view, destinations, together, told.name, leaving)
        if moved is None:
            kept[told.name] = why or "its pods fit nowhere else as safely as here"
            continue
        destinations.remove_node(told.name)
        staying -= 1
        taken.update(moved)
        price = table.prices[told.labels[INSTANCE_TYPE]]
        found.append(
            Consolidation(
                node=told,
                pods=tuple(leaving),
                destinations=moved,
                monthly=price.monthly(view.nodes[told.name].capacity),
            )
        )
    return Consolidations(found=tuple(found), kept=kept, unreached=frozenset(unreached))


def spared(whole: Resources) -> Resources:
    """Return what stays free of a node."""
    return Resources(cpu=int(whole.cpu * SPARE), memory=int(whole.memory * SPARE))


def has_to_spare(need: Resources, whole: Resources, free: Resources) -> bool:
    """Whether a node has room for a request, and still what stays free of it."""
    return (
        need.cpu + int(whole.cpu * SPARE) <= free.cpu
        and need.memory + int(whole.memory * SPARE) <= free.memory
        and (need + spared(whole)).within(free)
    )


def _used(standing: ClusterSnapshot, name: str) -> float:
    whole, free = standing.nodes[name].allocatable, standing.free(name)
    return max(
        1 - free.cpu / whole.cpu if whole.cpu else 0.0,
        1 - free.memory / whole.memory if whole.memory else 0.0,
    )


def _why_kept(  # noqa: PLR0911 - one line for each reason
    view: View, node: wire.Node, leaving: Sequence[wire.Pod]
) -> str | None:
    if not view.nodes[node.name].staying:
        return "it is not Ready, or somebody has cordoned it"
    if view.at - node.created_at < SETTLED:
        return f"it is younger than {SETTLED.seconds // 60} minutes"
    if any(taint.key == CONTROL_PLANE for taint in node.taints) or any(
        pod.owner is not None and pod.owner.kind == OwnerKind.NODE
        for pod in view.on_node[node.name]
    ):
        return "static pods run on it"
    if (why := why_node_protected(view.nodes[node.name])) is not None:
        return why
    if any(pod.deleting for pod in leaving):
        return "pods on it are stopping"
    if (why := _why_waited_for(view, node, leaving)) is not None:
        return why
    for pod in leaving:
        why = view.why_stays(pod)
        if why is not None:
            return f"{pod.namespace}/{pod.name} stays: {why}"
    return None


def _why_waited_for(view: View, node: wire.Node, leaving: Sequence[wire.Pod]) -> str | None:
    """Return which pod waits for a node and could stand on this one, were it empty; None: none could."""
    here = view.nodes[node.name]
    stay = [pod for pod in view.on_node[node.name] if pod not in leaving]
    room = here.allocatable - total_resources([amounts(pod.requests, pods=1) for pod in stay])
    for pod in view.waiting:
        scheduling = view.pods[pod.uid].scheduling
        fits = scheduling.requests.within(room) and why_never(scheduling, here) is None
        if fits or view.why_unknown(pod) is not None:
            return f"{pod.namespace}/{pod.name} waits for a node, and may fit on this one"
    return None


def _unpriced(node: wire.Node, table: PriceTable) -> str | None:
    name = node.labels.get(INSTANCE_TYPE, "without a type")
    return None if name in table.prices else f"no price is known of {name}"


class _Destinations:
    """The nodes that pods may move to, the fullest first, while pods move among them.

    A pod looks at nodes until the first that takes it: sorted anew for each pod, 5,000 nodes take minutes.
    """

    def __init__(self, standing: ClusterSnapshot) -> None:
        self.standing = standing
        self._rank: dict[str, tuple[float, str]] = {}
        self._room: dict[str, tuple[int, int]] = {}
        """Name of a node -> millicores and bytes that it may still take."""
        for node in standing.nodes.values():
            if node.staying:
                self._count(node)
        self._order = sorted(self._rank.values())

    def place(self, pod: Pod, name: str) -> None:
        """Move a pod to a node."""
        before = self.standing.where(pod)
        self.standing.place(pod, name)
        for changed in {name, before or name} & self._rank.keys():
            self._forget(changed)
            insort(self._order, self._count(self.standing.nodes[changed]))

    def remove_node(self, name: str) -> None:
        """Leave out a node with what is on it."""
        self.standing.remove_node(name)
        if name in self._rank:
            self._forget(name)
            del self._rank[name], self._room[name]

    def of(self, pod: Pod, together: Together) -> Node | None:
        """Return where a pod goes: on the same capacity, with something to spare, the fullest node first."""
        here = self.standing.where(pod) or ""
        capacities = {self.standing.nodes[here].capacity, ON_DEMAND}
        return self.standing.first(pod, self._possible(pod, here, capacities, together))

    def _possible(
        self, pod: Pod, but: str, capacities: Collection[str | None], together: Together
    ) -> Iterator[Node]:
        need, nodes, room = pod.scheduling.requests, self.standing.nodes, self._room
        cpu, memory = need.cpu, need.memory
        for _, name in self._order:
            has_cpu, has_memory = room[name]
            if cpu <= has_cpu and memory <= has_memory and name != but:
                node = nodes[name]
                if (
                    node.capacity in capacities
                    and together.allows(pod, node)
                    and has_to_spare(need, node.allocatable, self.standing.free(name))
                ):
                    yield node

    def _count(self, node: Node) -> tuple[float, str]:
        name, whole, free = node.name, node.allocatable, self.standing.free(node.name)
        self._room[name] = (
            free.cpu - int(whole.cpu * SPARE),
            free.memory - int(whole.memory * SPARE),
        )
        self._rank[name] = -_used(self.standing, name), name
        return self._rank[name]

    def _forget(self, name: str) -> None:
        del self._order[bisect_left(self._order, self._rank[name])]


def _moved(
    view: View,
    destinations: _Destinations,
    together: Together,
    name: str,
    leaving: Sequence[wire.Pod],
) -> tuple[str, ...] | None:
    """Move the pods of a node in the snapshot, largest first; undo it where one finds no place."""
    here = view.nodes[name]
    done: list[tuple[Pod, Node]] = []
    places: dict[str, str] = {}
    for pod in sorted(
        (view.pods[told.uid] for told in leaving),
        key=lambda p: (-p.scheduling.requests.memory, -p.scheduling.requests.cpu, p.uid),
    ):
        # The pod leaves its node first: it must not be in its own way.
        together.take(pod, here, -1)
        target = destinations.of(pod, together)
        if target is None:
            together.take(pod, here)
            for each, there in reversed(done):
                together.take(each, there, -1)
                together.take(each, here)
                destinations.place(each, name)
            return None
        together.take(pod, target)
        destinations.place(pod, target.name)
        done.append((pod, target))
        places[pod.uid] = target.name
    return tuple(places[told.uid] for told in leaving)
