"""Nodes that the cluster can do without: their pods fit on others, or they have none.

The nodes are found one after another, each in a cluster without those found before, and a node that
takes the pods of another stays. So any of them can be consolidated, in any order, as long as the
cluster stays as it was seen.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
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
from plimsoll_service.domain.analysis.cluster_view import Together, View, amounts
from plimsoll_service.domain.analysis.prices import PriceTable
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


def consolidations(view: View, table: PriceTable) -> Consolidations:
    """Return the nodes that can go, those with the least on them first."""
    standing = view.standing()
    together = Together(view)
    for node in standing.nodes.values():
        for pod in standing.on(node.name):
            together.take(pod, node)
    found: list[Consolidation] = []
    kept: dict[str, str] = {}
    taken: set[str] = set()
    used = {told.uid: _used(standing, told.name) for told in view.seen.nodes}
    for told in sorted(view.seen.nodes, key=lambda n: (used[n.uid], n.name)):
        leaving = [pod for pod in view.on_node[told.name] if view.leaves(pod)]
        why = _why_kept(view, told, leaving) or _unpriced(told, table)
        if told.name in taken:
            why = "it takes the pods of another"
        elif why is None and sum(node.staying for node in standing.nodes.values()) <= LEAST_NODES:
            why = f"it is one of the last {LEAST_NODES} nodes"
        moved = None if why else _moved(view, standing, together, told.name, leaving)
        if moved is None:
            kept[told.name] = why or "its pods fit nowhere else as safely as here"
            continue
        standing.remove_node(told.name)
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
    return Consolidations(found=tuple(found), kept=kept)


def spared(whole: Resources) -> Resources:
    """Return what stays free of a node."""
    return Resources(cpu=int(whole.cpu * SPARE), memory=int(whole.memory * SPARE))


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


def _moved(
    view: View,
    standing: ClusterSnapshot,
    together: Together,
    name: str,
    leaving: Sequence[wire.Pod],
) -> tuple[str, ...] | None:
    """Move the pods of a node in the snapshot, largest first; undo it where one finds no place."""
    here = standing.nodes[name]
    done: list[tuple[Pod, Node]] = []
    places: dict[str, str] = {}
    for pod in sorted(
        (view.pods[told.uid] for told in leaving),
        key=lambda p: (-p.scheduling.requests.memory, -p.scheduling.requests.cpu, p.uid),
    ):
        together.take(pod, here, -1)
        target = next(_targets(standing, together, pod, name), None)
        if target is None:
            together.take(pod, here)
            for each, there in reversed(done):
                together.take(each, there, -1)
                together.take(each, here)
                standing.place(each, name)
            return None
        together.take(pod, target)
        standing.place(pod, target.name)
        done.append((pod, target))
        places[pod.uid] = target.name
    return tuple(places[told.uid] for told in leaving)


def _targets(standing: ClusterSnapshot, together: Together, pod: Pod, but: str) -> Iterator[Node]:
    """Yield where a pod may go: on the same capacity, with something to spare, the fullest node first."""
    capacity = standing.nodes[but].capacity
    fitting = [
        node
        for node in standing.candidates(pod)
        if node.name != but
        and node.staying
        and node.capacity in {capacity, "on-demand"}
        and together.allows(pod, node)
        and (pod.scheduling.requests + spared(node.allocatable)).within(standing.free(node.name))
    ]
    yield from sorted(fitting, key=lambda node: (-_used(standing, node.name), node.name))
