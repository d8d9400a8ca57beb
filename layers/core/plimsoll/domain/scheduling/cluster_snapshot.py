"""What fits where: the scheduler's predicates, over a snapshot that can be changed.

One implementation for the planner and for the fake cluster's scheduler. Modelled on the filter
plugins of kube-scheduler's default profile:
https://kubernetes.io/docs/reference/scheduling/config/#scheduling-plugins
NodeResourcesFit, NodePorts and those of volumes are here; the others in `node_rules`, `affinity`
and `spreading`. docs/guides/spot-drain.md names the pods that are taken to fit nowhere though the scheduler may bind them.

A pod of a PodGroup that must be placed with others fits nowhere by itself: see `place_together`.

Left out: preemption (see `preemption`), and ReadWriteOnce volumes that still hang on another node, which the
scheduler does not look at either.

Surprise: `place` asks nothing. The snapshot shows what is, also where that breaks a rule.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Hashable, Iterable, Iterator, Mapping, Sequence
from copy import copy
from typing import Final, Self

from plimsoll.domain.kubernetes import (
    BoundPods,
    Claim,
    Node,
    NodeRequirements,
    Pod,
    PodGroup,
    Ref,
    Resources,
    why_never,
)
from plimsoll.domain.scheduling.affinity import AntiAffinityIndex, affinity_filter
from plimsoll.domain.scheduling.node_filter_cache import SuitableNodes, in_reach
from plimsoll.domain.scheduling.node_ranking import (
    Domain,
    EquivalenceGroup,
    NodeOrder,
    NodeRanking,
    Spare,
)
from plimsoll.domain.scheduling.scoring import PeerCounts, best, left, shunned
from plimsoll.domain.scheduling.spreading import SpreadFilter, spread_filters
from plimsoll.domain.scheduling.standing_pods import StandingPods
from plimsoll.domain.scheduling.topology_counts import FilterReason, TopologyCounts

_CLAIMED: Final = (
    "node has pod using PersistentVolumeClaim with the same name and ReadWriteOncePod access mode"
)
MOST_ORDERS: Final = 16
"""Orders of nodes that are kept: few templates of a cluster differ in what they demand of a node itself."""


class ClusterSnapshot:
    """Nodes with the pods that stand on them; a pod is known by its uid, a node by its name."""

    def __init__(
        self,
        nodes: Iterable[Node],
        pods: Iterable[Pod] | BoundPods,
        claims: Mapping[tuple[str, str], Claim] | None = None,
    ) -> None:
        """Place every pod that names a node of the snapshot and is not finished.

        Args:
            nodes: all nodes.
            pods: all pods, no two of one uid.
            claims: one that is not given demands nothing of a node, like one that is not bound.
        """
        self._nodes: dict[str, Node] = {}
        self._standing = StandingPods()
        self._free: dict[str, Resources] = {}
        self._ports: Counter[tuple[str, str, int, str | None]] = Counter()
        """By node, protocol, port and address; under None those of all addresses together."""
        self._claims = dict(claims or {})
        self._peers = PeerCounts(self._nodes)
        self._anti_affinity_index = AntiAffinityIndex()
        self._topology = TopologyCounts(self._nodes, self._standing)
        self._suitable = SuitableNodes(self._nodes)
        self._places: dict[str, int] = {}
        """Numbers the nodes in the order in which they were added."""
        self._added = 0
        self._orders: dict[Hashable, NodeOrder] = {}
        self._row: EquivalenceGroup | None = None
        self._ranking: NodeRanking | None = None
        self._members: dict[Ref, set[str]] = {}
        """PodGroup -> uids of its pods that stand and stay."""
        self._gathered: frozenset[Ref] = frozenset()
        for node in nodes:
            self.add_node(node)
        bound = pods if isinstance(pods, BoundPods) else BoundPods.of(pods)
        bound = bound.only_on(self._nodes)
        self._standing.begin(bound)
        for name, requests in bound.requests.items():
            self._free[name] -= requests
        self._peers.begin(bound)
        # Other pods have nothing to count yet: topology and ranking begin when they are asked.
        for pod in bound.affecting:
            self._count(pod, pod.node or "", 1)

    @property
    def nodes(self) -> Mapping[str, Node]:
        """The nodes by name."""
        return self._nodes

    def on(self, node_name: str) -> Sequence[Pod]:
        """Return the pods on a node."""
        return tuple(self._standing.on(node_name).values())

    def where(self, pod: Pod) -> str | None:
        """Return the name of the node on which the snapshot holds a pod."""
        return self._standing.where(pod)

    def free(self, node_name: str) -> Resources:
        """Return what a node has left; below zero where it holds more than it should."""
        return self._free[node_name]

    def why_not(self, pod: Pod, node: Node) -> str | None:
        """Say in the scheduler's words why a pod does not fit on a node of the snapshot.

        None when it fits. A pod that stands in the snapshot is seen as if it had left.
        """
        suits = self._suitable.takes(node, pod.scheduling, self._volumes_of(pod))
        found = None if suits else why_never(pod.scheduling, node)
        if found is not None:
            return found
        held = self._take_off(pod)
        try:
            # Resources before volumes, in the order of kube-scheduler's filters: the first refusal gives the reason.
            found = _why_short(pod.scheduling.requests, self._free[node.name])
            found = found or self._why_attached(pod, node)
            if found is not None:
                return found
            if not suits:
                return "node(s) had volume node affinity conflict"
            return next(
                (why for h in self._filter_reasons(pod) if (why := h(node)) is not None), None
            )
        finally:
            self._put_back(held)

    def in_reach(self, pod: Pod, node: Node) -> bool:
        """Whether a node may mount the volumes of a pod; the node need not be in the snapshot."""
        return in_reach(self._volumes_of(pod), node)

    def must_leave(self, pod: Pod, node: Node, others: Sequence[Pod]) -> Sequence[Pod] | None:
        """Return which of the others on a node must leave it so that a pod fits there.

        They are spared in their order, as long as it fits. None where it does not fit without all of them.
        """
        if why_never(pod.scheduling, node) is not None:
            return None
        # All leave first. Then each one returns if the pod still fits beside it, as kube-scheduler reprieves victims.
        lifted = {each.uid: self._take_off(each) for each in others}
        try:
            if self.why_not(pod, node) is not None:
                return None
            for each in others:
                self._put_back(lifted.pop(each.uid))
                if self.why_not(pod, node) is not None:
                    lifted[each.uid] = self._take_off(each)
            return [each for each in others if each.uid in lifted]
        finally:
            for held in lifted.values():
                self._put_back(held)

    def candidates(self, pod: Pod) -> list[Node]:
        """Return the nodes that a pod fits on, in the order in which they were added.

        A pod that stands in the snapshot is seen as if it had left.
        """
        held = self._take_off(pod)
        try:
            return list(self._fitting(pod, (self._nodes[name] for name in self.suitable(pod))))
        finally:
            self._put_back(held)

    def first(self, pod: Pod, nodes: Iterable[Node]) -> Node | None:
        """Return the first of some nodes of the snapshot that a pod fits on; None where it fits on none.

        A pod that stands in the snapshot is seen as if it had left. Nodes after the first are not looked at.
        """
        held = self._take_off(pod)
        try:
            scheduling, volumes = pod.scheduling, self._volumes_of(pod)
            suited = (node for node in nodes if self._suitable.takes(node, scheduling, volumes))
            return next(self._fitting(pod, suited), None)
        finally:
            self._put_back(held)

    def _fitting(self, pod: Pod, suitable: Iterable[Node]) -> Iterator[Node]:
        """Yield the nodes, of those that meet what a pod requires of a node itself, that it fits on now."""
        need = pod.scheduling.requests
        reasons: tuple[FilterReason, ...] | None = None
        for node in suitable:
            if (
                _why_short(need, self._free[node.name]) is not None
                or self._why_attached(pod, node) is not None
            ):
                continue
            if reasons is None:  # they cost more than a node that is full
                reasons = tuple(self._filter_reasons(pod))
            if all(why(node) is None for why in reasons):
                yield node

    @property
    def without_yielding(self) -> ClusterSnapshot:
        """The same without the pods that make way for others at once: see `plimsoll.domain.scheduling.preemption`."""
        return self

    def yields(self, _pod: Pod) -> bool:
        """Whether a pod makes way for others at once, wherever it stands."""
        return False

    def preempts(self, _pod: Pod) -> bool:
        """Whether they make way for a pod."""
        return False

    def open_to(self, pod: Pod) -> ClusterSnapshot:
        """Return what a pod may count on."""
        return self.without_yielding if self.preempts(pod) else self

    def suitable(self, pod: Pod) -> Sequence[str]:
        """Return the names of the nodes that meet what a pod requires of a node itself."""
        return self._suitable.of(pod.scheduling, self._volumes_of(pod))

    def missing(self, group: PodGroup) -> int:
        """Return how many more pods of a group have to be placed at once so that kube-scheduler places any.

        Pods that stop, and those on interrupted nodes, leave: they do not count.
        """
        return max(0, (group.min_count or 1) - len(self._members.get(group.ref, ())))

    def gather(self, groups: Iterable[Ref]) -> None:
        """Let the pods of some groups be placed one after the other: the caller sees to it that enough of them are."""
        self._gathered |= frozenset(groups)

    def scatter(self, groups: Iterable[Ref]) -> None:
        """Let the pods of some groups fit nowhere by themselves again."""
        self._gathered -= frozenset(groups)

    def why_alone(self, pod: Pod) -> str | None:
        """Say why kube-scheduler does not place a pod by itself, whatever there is room for; None where it does."""
        group = pod.group
        if group is None or group.ref in self._gathered:
            return None
        if group.min_count is None:
            return f"nothing is known of its {group.ref}"
        missing = self.missing(group) + (pod.uid in self._members.get(group.ref, ()))
        if missing <= 1:
            return None
        return f"{missing} pods of its {group.ref} are placed together or none"

    def take_displaced(self) -> Sequence[Pod]:
        """Return the pods that have made way since this was asked last, and need another node."""
        return ()

    def alike(self, pod: Pod) -> Hashable | None:
        """Return what all pods have in common that fit on the same nodes, but for their own spread constraints.

        None where other pods decide that too.
        """
        if next(self._other_reasons(pod), None) is not None:
            return None
        required = self._suitable.requirement(pod.scheduling, self._volumes_of(pod))
        scheduling = pod.scheduling
        return required, scheduling.requests, len(scheduling.claims), len(scheduling.ephemeral)

    def spread_filters(self, pod: Pod) -> Sequence[SpreadFilter]:
        """Return what a pod's own hard spread constraints demand of a node now, as if it had left."""
        held = self._take_off(pod)
        try:
            return tuple(spread_filters(pod, self._topology))
        finally:
            self._put_back(held)

    def explain(self, pod: Pod, *, without: Collection[str] = ()) -> str:
        """Say why a pod is Pending, in the form of the scheduler's event: reasons and counts.

        Nodes named in `without` are not looked at.
        """
        nodes = [node for name, node in self._nodes.items() if name not in without]
        reasons = Counter(why for node in nodes if (why := self.why_not(pod, node)) is not None)
        counted = ", ".join(f"{n} {why}" for why, n in sorted(reasons.items()))
        fitting = len(nodes) - reasons.total()
        return f"{fitting}/{len(nodes)} nodes are available" + (f": {counted}" if counted else "")

    def best(self, pod: Pod, candidates: Sequence[Node]) -> Node:
        """Choose one of the nodes (at least one) about as the default scoring would."""
        return best(pod, candidates, self._free, self._peers)

    def choose(self, pod: Pod, closed: Collection[str] = frozenset()) -> Node | None:
        """Return the best of the candidates that are not closed; None where there is none.

        The same as `candidates` and `best` would, and much faster in a large cluster.
        """
        # In this case only the node itself and spread constraints decide. Otherwise each node is checked.
        if self.where(pod) is None and next(self._other_reasons(pod), None) is None:
            row = EquivalenceGroup(pod.scheduling, self._volumes_of(pod), pod.owner, closed)
            if self._ranking is None or self._row is None or not self._row.same(row):
                self._row, self._ranking = row, self._rank(pod, closed)
            return self._ranking.first(tuple(spread_filters(pod, self._topology)))
        nodes = [node for node in self.candidates(pod) if node.name not in closed]
        return self.best(pod, nodes) if nodes else None

    def _rank(self, pod: Pod, closed: Collection[str]) -> NodeRanking:
        scheduling, volumes = pod.scheduling, self._volumes_of(pod)
        required = self._suitable.requirement(scheduling, volumes)
        keys = tuple(sorted({each.topology_key for each in scheduling.spread if each.hard}))
        kind = (required, keys, frozenset(closed))
        order = self._orders.get(kind)
        if order is None:
            if len(self._orders) >= MOST_ORDERS:
                # The oldest entry: a dict keeps insertion order.
                del self._orders[next(iter(self._orders))]
            order = self._orders[kind] = NodeOrder(self._suitable.of(scheduling, volumes))

        def look(name: str) -> tuple[Domain, Spare] | None:
            node = self._nodes.get(name)
            if node is None or name in closed or not required.met_by(node, scheduling):
                return None
            free = left(self._free[name], node.allocatable)
            domain = (node.zone, *(node.labels.get(key) for key in keys))
            return domain, (shunned(pod, node), -free, self._places[name], name)

        here, around = self._peers.of(pod)
        return NodeRanking(
            order,
            scheduling.requests,
            look=look,
            nodes=self._nodes,
            fits=lambda name: (
                _why_short(scheduling.requests, self._free[name]) is None
                and self._why_attached(pod, self._nodes[name]) is None
            ),
            here=here,
            around=around,
        )

    def place(self, pod: Pod, node_name: str) -> None:
        """Put a pod on a node without asking whether it fits; a pod already there is replaced.

        Raises:
            KeyError: the snapshot has no such node.
        """
        if node_name not in self._nodes:
            raise KeyError(node_name)
        self._take_off(pod)
        self._stand(pod, node_name)

    def _stand(self, pod: Pod, node_name: str) -> None:
        self._free[node_name] -= pod.scheduling.requests
        self._standing.stand(pod, node_name)
        self._count(pod, node_name, 1)
        self._peers.change(pod, self._nodes[node_name], 1)

    def remove(self, pod: Pod) -> None:
        """Take a pod off; nothing happens where it is not in the snapshot."""
        self._take_off(pod)

    def _take_off(self, pod: Pod) -> tuple[Pod, str] | None:
        """Take a pod off, and return it as it stood, with its node; None where it stands nowhere."""
        found = self._standing.take_off(pod)
        if found is not None:
            held, name = found
            self._free[name] += held.scheduling.requests
            self._count(held, name, -1)
            self._peers.change(held, self._nodes[name], -1)
        return found

    def undo(self, pods: Iterable[Pod]) -> None:
        """Take pods off again that were just placed, as if they had not been."""
        for pod in pods:
            self.remove(pod)

    def place_together(self, pods: Sequence[Pod]) -> Sequence[Pod]:
        """Place the pods of one PodGroup, as many as it needs or none, and return those without a place."""
        group = pods[0].group
        if group is None or group.min_count is None or len(pods) < (missing := self.missing(group)):
            return pods
        placed = []
        self.gather([group.ref])
        for pod in pods:
            node = self.choose(pod)
            if node is not None:
                self.place(pod, node.name)
                placed.append(pod)
        self.scatter([group.ref])
        if len(placed) < missing:
            self.undo(placed)
            return pods
        seated = {pod.uid for pod in placed}
        return [pod for pod in pods if pod.uid not in seated]

    @property
    def made_way_together(self) -> Mapping[Ref, int]:
        """PodGroups that made way as a whole -> how many of their pods did."""
        return {}

    def add_node(self, node: Node) -> None:
        """Add a node, or put a changed one in place of the old; its pods stay on it."""
        old = self._nodes.get(node.name)
        if old is not None and _alike(old, node):
            self._nodes[node.name] = node
            return
        pods = self.on(node.name) if old is not None else ()
        self._take_off_node(node.name)
        self._nodes[node.name] = node
        self._standing.add_node(node.name)
        self._free[node.name] = node.allocatable
        self._added += 1
        self._places[node.name] = self._added
        self._topology.add_node(node)
        self._suitable.add(node)
        self._node_changed(node.name)
        for pod in pods:
            self._stand(pod, node.name)

    def remove_node(self, node_name: str) -> None:
        """Take a node off with its pods; nothing happens where it is not in the snapshot."""
        self._take_off_node(node_name)

    def _take_off_node(self, node_name: str) -> None:
        if node_name not in self._nodes:
            return
        for pod in self.on(node_name):
            self._take_off(pod)
        del self._nodes[node_name], self._free[node_name], self._places[node_name]
        self._standing.remove_node(node_name)
        self._topology.remove_node(node_name)
        self._suitable.remove(node_name)
        self._node_changed(node_name)

    def set_claim(self, claim: Claim) -> None:
        """Learn of a claim, for example that it was bound."""
        self._claims[claim.namespace, claim.name] = claim

    def copy(self) -> Self:
        """Return a snapshot to plan on; changes to one are not seen by the other."""
        twin = copy(self)
        twin._part()  # noqa: SLF001 - it is of this class
        return twin

    def _part(self) -> None:
        self._nodes = self._nodes.copy()
        self._standing = self._standing.copy()
        self._free = self._free.copy()
        self._ports = self._ports.copy()
        self._claims = self._claims.copy()
        self._peers = self._peers.over(self._nodes)
        self._anti_affinity_index = self._anti_affinity_index.copy()
        self._topology = self._topology.over(self._nodes, self._standing)
        self._suitable = self._suitable.over(self._nodes)
        self._places = self._places.copy()
        self._members = {ref: members.copy() for ref, members in self._members.items()}
        self._orders = {kind: order.copy() for kind, order in self._orders.items()}
        # A ranking reads its own snapshot, so a copy starts without one.
        self._row, self._ranking = None, None

    def _count(self, pod: Pod, node_name: str, by: int) -> None:
        node = self._nodes[node_name]
        for protocol, port, address in pod.scheduling.host_ports:
            self._ports[node_name, protocol, port, address] += by
            self._ports[node_name, protocol, port, None] += by
        if pod.group is not None:
            members = self._members.setdefault(pod.group.ref, set())
            if by > 0 and pod.deleting is None and node.interruption is None:
                members.add(pod.uid)
            else:
                members.discard(pod.uid)
        self._anti_affinity_index.change(pod, node, by)
        self._topology.change(pod, node_name, by)
        self._node_changed(node_name)

    def _node_changed(self, name: str) -> None:
        for order in self._orders.values():
            order.changed(name)
        if self._ranking is not None:
            self._ranking.changed(name)

    def _put_back(self, held: tuple[Pod, str] | None) -> None:
        if held is not None:
            self._stand(*held)

    def _claims_of(self, pod: Pod) -> Iterator[Claim]:
        for name in pod.scheduling.claims:
            if (claim := self._claims.get((pod.namespace, name))) is not None:
                yield claim

    def _mounted_by(self, pod: Pod) -> Iterator[Claim]:
        """Yield all claims whose volumes a pod has attached, of its ephemeral volumes too."""
        yield from self._claims_of(pod)
        for volume in pod.scheduling.ephemeral:
            claim = self._claims.get((pod.namespace, f"{pod.name}-{volume}"))
            if claim is not None:
                yield claim

    def _volumes_of(self, pod: Pod) -> NodeRequirements:
        claims = self._claims_of(pod)
        return tuple(claim.node_terms for claim in claims if claim.node_terms is not None)

    def _claimed(self, claim: Claim) -> bool:
        """Whether a pod on any node has a claim."""
        pods = self._standing.within(claim.namespace).values()
        return any(claim.name in pod.scheduling.claims for pod in pods)

    def _why_attached(self, pod: Pod, node: Node) -> str | None:
        """Compare the volumes that would be attached to a node with what its CSI drivers can attach."""
        if not node.volume_limits:
            return None
        wanted = set(self._mounted_by(pod))
        if not wanted:
            return None
        there = {claim for each in self.on(node.name) for claim in self._mounted_by(each)}
        more = {claim.driver for claim in wanted - there}
        counts = Counter(claim.driver for claim in there | wanted)
        if any(counts[driver] > node.volume_limits.get(driver, counts[driver]) for driver in more):
            return "node(s) exceed max volume count"
        return None

    def _filter_reasons(self, pod: Pod) -> Iterator[FilterReason]:
        """Yield the checks that depend on what else is in the snapshot, most of them seldom used."""
        yield from self._other_reasons(pod)
        yield from spread_filters(pod, self._topology)

    def _other_reasons(self, pod: Pod) -> Iterator[FilterReason]:
        """Yield those that are not about its own spread constraints."""
        scheduling = pod.scheduling
        if (alone := self.why_alone(pod)) is not None:
            yield lambda _: alone
        if scheduling.host_ports:
            yield self._ports_free(scheduling.host_ports)
        if any(claim.single_pod and self._claimed(claim) for claim in self._claims_of(pod)):
            yield lambda _: _CLAIMED
        yield from affinity_filter(pod, self._topology)
        yield from self._anti_affinity_index.filter_reasons(pod)

    def _ports_free(self, ports: Sequence[tuple[str, int, str]]) -> FilterReason:
        wanted = [
            (protocol, port, taken)
            for protocol, port, address in ports
            for taken in ((address, "") if address else (None,))
        ]

        def free(node: Node) -> str | None:
            if any(self._ports[node.name, *port] > 0 for port in wanted):
                return "node(s) didn't have free ports for the requested pod ports"
            return None

        return free


def _why_short(need: Resources, headroom: Resources) -> str | None:
    """Compare what is asked for; an amount of zero fits even where too much is taken.

    https://kubernetes.io/docs/concepts/configuration/manage-resources-containers/#how-pods-with-resource-requests-are-scheduled
    """
    if need.pods > headroom.pods:
        return "Too many pods"
    if need.cpu > headroom.cpu and need.cpu:
        return "Insufficient cpu"
    if need.memory > headroom.memory and need.memory:
        return "Insufficient memory"
    if need.extended:
        have = dict(headroom.extended)
        for name, amount in need.extended:
            if amount > have.get(name, 0) and amount:
                return f"Insufficient {name}"
    return None


def _alike(old: Node, new: Node) -> bool:
    """Whether nothing changed that decides what fits: most updates of a node are heartbeats."""
    return (
        old.labels == new.labels
        and old.taints == new.taints
        and old.unschedulable == new.unschedulable
        and old.ready == new.ready
        and old.allocatable == new.allocatable
        and old.volume_limits == new.volume_limits
    )
