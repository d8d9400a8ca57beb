"""Which of the nodes that fit: a thin stand-in for the scheduler's default scoring.

Source: https://kubernetes.io/docs/reference/scheduling/config/#scheduling-plugins and the plugins
TaintToleration, PodTopologySpread (its built-in defaults over host and zone) and NodeResourcesFit
(LeastAllocated) of kube-scheduler. They are weighed there and taken one after the other here, in
the order of their usual effect; ties go by name, where the scheduler draws. Preferred affinity,
soft spread constraints and image locality are left out.
"""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from typing import Final, Self

from plimsoll.domain.kubernetes import BoundPods, Node, Pod, Ref, Resources, untolerated

_SOFT: Final = frozenset({"PreferNoSchedule"})


class PeerCounts:
    """How many pods of each owner stand on each node and in each zone.

    Those of an owner are counted when somebody asks, or when one of them changes: a plan concerns few owners of a large
    cluster.
    """

    def __init__(self, nodes: Mapping[str, Node]) -> None:
        """Begin without pods. The nodes by name are the snapshot's own."""
        self._nodes = nodes
        self._counts: dict[Ref, tuple[Counter[str], Counter[str]]] = {}
        self._unlisted: dict[str, Sequence[Pod]] = {}
        """Namespace -> its pods at `begin`, until somebody asks for an owner in it."""
        self._uncounted: dict[Ref, Sequence[Pod]] = {}
        """Owner -> its pods at `begin`, until somebody asks for it. The lists never change, so copies share them."""

    def begin(self, bound: BoundPods) -> None:
        """Take the pods of a new snapshot, which has the nodes that they name; before anything is asked or changed."""
        self._unlisted.update(bound.in_namespace)

    def change(self, pod: Pod, node: Node, by: int) -> None:
        """Count a pod in (1) or out (-1)."""
        if pod.owner is not None:
            here, around = self._of(pod.namespace, pod.owner)
            here[node.name] += by
            around[node.zone or ""] += by

    def of(self, pod: Pod) -> tuple[Mapping[str, int], Mapping[str, int]]:
        """Return the counts for the owner of a pod by node and by zone, which go on changing."""
        return ({}, {}) if pod.owner is None else self._of(pod.namespace, pod.owner)

    def over(self, nodes: Mapping[str, Node]) -> Self:
        """Return counts over a copy of the snapshot's nodes, which go on by themselves."""
        twin = type(self)(nodes)
        twin._unlisted.update(self._unlisted)  # noqa: SLF001 - it is of this class
        twin._uncounted.update(self._uncounted)  # noqa: SLF001
        twin._counts.update(  # noqa: SLF001
            (owner, (here.copy(), around.copy())) for owner, (here, around) in self._counts.items()
        )
        return twin

    def _of(self, namespace: str, owner: Ref) -> tuple[Counter[str], Counter[str]]:
        if owner not in self._counts:
            listed: defaultdict[Ref, list[Pod]] = defaultdict(list)
            for pod in self._unlisted.pop(namespace, ()):
                if pod.owner is not None:
                    listed[pod.owner].append(pod)
            self._uncounted.update(listed)  # before the next line, which takes the owner out again
            pods = self._uncounted.pop(owner, ())
            nodes = [self._nodes[pod.node] for pod in pods if pod.node is not None]
            here, around = (node.name for node in nodes), (node.zone or "" for node in nodes)
            self._counts[owner] = Counter(here), Counter(around)
        return self._counts[owner]


def best(
    pod: Pod, candidates: Sequence[Node], free: Mapping[str, Resources], peers: PeerCounts
) -> Node:
    """Choose: no soft taint, then far from pods of the same owner, then least allocated.

    Among equals the first one is taken: whoever asks decides in which order they stand.
    """
    by_zone, by_host = weights(zones=len({node.zone for node in candidates}), nodes=len(candidates))
    here, around = peers.of(pod)

    def rank(node: Node) -> tuple[bool, float, float]:
        near = by_host * here.get(node.name, 0) + by_zone * around.get(node.zone or "", 0)
        return shunned(pod, node), near, -left(free[node.name], node.allocatable)

    return min(candidates, key=rank)


def weights(*, zones: int, nodes: int) -> tuple[float, float]:
    """Return what a pod of the same owner in the same zone, and on the same node, weighs.

    As in PodTopologySpread: more where there are more domains to choose from.
    """
    return math.log(zones + 2), math.log(nodes + 2)


def shunned(pod: Pod, node: Node) -> bool:
    """Whether a node has a soft taint that a pod does not tolerate."""
    return (
        bool(node.taints)
        and untolerated(node.taints, pod.scheduling.tolerations, _SOFT) is not None
    )


def left(free: Resources, whole: Resources) -> float:
    """Return the shares of cpu and memory that are free, added up."""
    cpu = free.cpu / whole.cpu if whole.cpu else 0.0
    memory = free.memory / whole.memory if whole.memory else 0.0
    return cpu + memory
