"""Preemption: pods that kube-scheduler lets go so that a pod of a higher priority has a place.

Clusters keep headroom by pods of a negative priority ("balloons", the cluster-overprovisioner). Their places
are free to any pod that preempts, at once: `PreemptingSnapshot`. Pods of other lower priorities serve somebody, and
no plan counts on their places.

Sources: https://kubernetes.io/docs/concepts/scheduling-eviction/pod-priority-preemption/,
k8s.io/kubernetes/pkg/scheduler/framework/plugins/defaultpreemption/default_preemption.go (SelectVictimsOnNode,
filterPodsWithPDBViolation), pkg/scheduler/framework/preemption/preemption.go (pickOneNodeForPreemption).
kube-scheduler takes the node on which no budget is violated and the highest priority of a victim is the lowest, so
a node where pods of a negative priority suffice comes before all others.

A PodGroup that is preempted as a whole (`disruptionMode: all`) makes way with all of its pods, on whatever nodes they
stand, or with none: pkg/scheduler/framework/preemption/types.go (getCrossNodesVictims).

Left out: among nodes where pods of a negative priority suffice the one that is chosen here is the one with the most
room, not the one with the fewest victims. On the safe side: a pod whose budget may not let it go makes way for nobody,
nor does one that may take long to stop; and a pod of a negative priority counts on nobody.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Final, override

from plimsoll.domain.kubernetes import Budget, Claim, Node, Pod, Ref, matches
from plimsoll.domain.observation import Observation
from plimsoll.domain.scheduling.cluster_snapshot import ClusterSnapshot

MOST_BUDGETS: Final = 100
"""Of one namespace: each pod there is compared with all of them, and tenants may make any number."""

YIELDING_GRACE_SECONDS: Final = 30
"""The longest grace period, in seconds, of a pod that makes way: kube-scheduler waits until it has ended.
It is Kubernetes' default; that of a balloon is usually 0."""


def makes_way(pod: Pod) -> bool:
    """Whether the place of a pod is free to others at once, as far as its budgets let it go."""
    return pod.priority < 0 and pod.grace_seconds <= YIELDING_GRACE_SECONDS and not pod.mirror


def violating(pods: Iterable[Pod], budgets_in: Mapping[str, Sequence[Budget]]) -> frozenset[str]:
    """Return the uids of those that their budgets would not let go, asked in this order.

    In a namespace with more than `MOST_BUDGETS` that is taken to be every pod.

    Args:
        pods: in the order in which they are asked to go.
        budgets_in: the budgets by namespace.
    """
    taken: Counter[Ref] = Counter()
    found = set()
    for pod in pods:
        budgets = budgets_in.get(pod.namespace, ())
        if len(budgets) > MOST_BUDGETS:
            found.add(pod.uid)
            continue
        for budget in budgets:
            if matches(budget.selector, pod.labels):
                taken[budget.ref] += 1
                if taken[budget.ref] > budget.disruptions_allowed:
                    found.add(pod.uid)
    return frozenset(found)


def kept_with_others(pods: Iterable[Pod], guarded: Collection[str]) -> frozenset[str]:
    """Return the uids of pods that make way only with their whole PodGroup, of which some pod does not.

    Args:
        pods: all pods.
        guarded: uids of those that their budgets would not let go.
    """
    whole = [pod for pod in pods if pod.group is not None and pod.group.together and pod.node]
    kept = {p.group for p in whole if not makes_way(p) or p.uid in guarded}
    return frozenset(pod.uid for pod in whole if pod.group in kept)


def snapshot_of(nodes: Iterable[Node], seen: Observation) -> ClusterSnapshot:
    """Return where the pods of an observation stand, on these nodes."""
    yielding = [pod for pod in seen.pods if makes_way(pod)]
    if not yielding:
        return ClusterSnapshot(nodes, seen.bound, seen.claims)
    guarded = violating(yielding, seen.budgets_in) if seen.budgets else frozenset()
    guarded |= kept_with_others(seen.pods, guarded)
    return PreemptingSnapshot(nodes, seen.pods, seen.claims, guarded)


class PreemptingSnapshot(ClusterSnapshot):
    """A snapshot in which pods make way for those that would preempt them, and fit nowhere beside them."""

    def __init__(
        self,
        nodes: Iterable[Node],
        pods: Iterable[Pod],
        claims: Mapping[tuple[str, str], Claim] | None = None,
        guarded: frozenset[str] = frozenset(),
    ) -> None:
        """Place pods as `ClusterSnapshot` does.

        Args:
            nodes: all nodes.
            pods: all pods.
            claims: what is known of their claims.
            guarded: uids of pods that their budgets would not let go.
        """
        pods = list(pods)
        self._guarded = guarded
        self._displaced: dict[str, Pod] = {}
        self._made_way: dict[str, list[tuple[Pod, str]]] = {}
        """Uid of a pod -> those that made way for it, and where they stood."""
        self._rest: ClusterSnapshot | None = None
        super().__init__(nodes, pods, claims)
        rest = self.copy()
        for pod in pods:
            if self.yields(pod):
                rest.remove(pod)
        self._rest = rest

    @override
    def yields(self, pod: Pod) -> bool:
        return makes_way(pod) and pod.uid not in self._guarded

    @override
    def preempts(self, pod: Pod) -> bool:
        return self._rest is not None and pod.preempts and pod.priority >= 0

    @property
    @override
    def without_yielding(self) -> ClusterSnapshot:
        return self if self._rest is None else self._rest

    @override
    def take_displaced(self) -> Sequence[Pod]:
        """Return those that controllers make anew."""
        displaced, self._displaced = self._displaced, {}
        return tuple(
            p for p in displaced.values() if p.owner and not p.of_daemon_set and p.deleting is None
        )

    @override
    def choose(self, pod: Pod, closed: Collection[str] = frozenset()) -> Node | None:
        """Return the best node on which it fits; where there is none, one on which others make way."""
        found = super().choose(pod, closed)
        if found is None and self.preempts(pod):
            return self.without_yielding.choose(pod, closed)
        return found

    @override
    def place(self, pod: Pod, node_name: str) -> None:
        """Put a pod on a node, and take off those that make way for it there."""
        for victim in self._with_groups(self._victims(pod, node_name)):
            if (stood := self._take_off(victim)) is not None:
                self._made_way.setdefault(pod.uid, []).append(stood)
                self._displaced[victim.uid] = victim
        super().place(pod, node_name)
        self._displaced.pop(pod.uid, None)
        if self._rest is not None and not self.yields(pod):
            self._rest.place(pod, node_name)

    def _victims(self, pod: Pod, node_name: str) -> Sequence[Pod]:
        if not self.preempts(pod):
            return ()
        yielding = [p for p in self.on(node_name) if self.yields(p)]
        node = self.nodes[node_name]
        if not yielding or self.why_not(pod, node) is None:
            return ()
        # The order in which they are spared: first those that do not stop yet, of the highest priority, the oldest.
        yielding.sort(key=lambda p: (p.deleting is not None, -p.priority, p.created))
        return self.must_leave(pod, node, yielding) or ()

    def _with_groups(self, victims: Sequence[Pod]) -> Sequence[Pod]:
        """Return the victims, and all others of the PodGroups that are preempted as a whole."""
        found = {pod.uid: pod for pod in victims}
        for group in {p.group.ref for p in victims if p.group is not None and p.group.together}:
            for uid in self._members[group]:
                found.setdefault(uid, self._standing.within(group.namespace)[uid])
        return [*found.values()]

    @property
    @override
    def made_way_together(self) -> Mapping[Ref, int]:
        victims = (victim for made in self._made_way.values() for victim, _ in made)
        return Counter(p.group.ref for p in victims if p.group is not None and p.group.together)

    @override
    def gather(self, groups: Iterable[Ref]) -> None:
        groups = [*groups]
        super().gather(groups)
        if self._rest is not None:
            self._rest.gather(groups)

    @override
    def scatter(self, groups: Iterable[Ref]) -> None:
        groups = [*groups]
        super().scatter(groups)
        if self._rest is not None:
            self._rest.scatter(groups)

    @override
    def undo(self, pods: Iterable[Pod]) -> None:
        pods = [*pods]
        super().undo(pods)
        for victim, node_name in (one for p in pods for one in self._made_way.pop(p.uid, ())):
            if self._displaced.pop(victim.uid, None) is not None:
                super().place(victim, node_name)

    @override
    def remove(self, pod: Pod) -> None:
        super().remove(pod)
        if self._rest is not None:
            self._rest.remove(pod)

    @override
    def add_node(self, node: Node) -> None:
        super().add_node(node)
        if self._rest is not None:
            self._rest.add_node(node)

    @override
    def remove_node(self, node_name: str) -> None:
        super().remove_node(node_name)
        if self._rest is not None:
            self._rest.remove_node(node_name)

    @override
    def set_claim(self, claim: Claim) -> None:
        super().set_claim(claim)
        if self._rest is not None:
            self._rest.set_claim(claim)

    @override
    def _part(self) -> None:
        super()._part()
        self._displaced = self._displaced.copy()
        self._made_way = {uid: made[:] for uid, made in self._made_way.items()}
        if self._rest is not None:
            self._rest = self._rest.copy()
