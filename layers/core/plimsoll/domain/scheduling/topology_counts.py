"""Counting pods by topology domain, kept up to date as pods and nodes come and go.

Pod affinity, anti-affinity and topology spread all ask the same: how many pods of some kind stand
in each zone, host or other domain. A count is made when the first pod asks, and then follows every
change of the snapshot, so that the next pod's answer costs nothing. Pods that look the same to every
count are counted together: a large cluster has thousands of counts, and few kinds of pods in each of them.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Hashable, Iterable, Mapping
from copy import copy
from dataclasses import dataclass, field
from typing import Self

from plimsoll.domain.kubernetes import Node, Pod
from plimsoll.domain.scheduling.standing_pods import StandingPods

type FilterReason = Callable[[Node], str | None]
"""Says why a node will not do for the pod at hand, in the scheduler's words."""
type Admits = Callable[[Pod], bool]
"""Whether a pod counts. Decides by its namespace, its labels and whether it is being deleted, by nothing else."""
type DomainOf = Callable[[Node], str | None]


class Domains:
    """Which domain each node is in, for all counts that divide the nodes alike."""

    __slots__ = ("_domain_of", "home", "size")

    def __init__(self, domain_of: DomainOf, nodes: Iterable[Node]) -> None:
        """Divide nodes; one for which `domain_of` gives None is left out."""
        self._domain_of = domain_of
        self.home: dict[str, str] = {}
        """Name of a node -> its domain."""
        self.size: dict[str, int] = {}
        """Domain -> its nodes. None is empty."""
        for node in nodes:
            self.add(node)

    def add(self, node: Node) -> None:
        """Add a node."""
        domain = self._domain_of(node)
        if domain is not None:
            self.home[node.name] = domain
            self.size[domain] = self.size.get(domain, 0) + 1

    def remove(self, name: str) -> None:
        """Leave out a node; its domain may vanish with it."""
        domain = self.home.pop(name, None)
        if domain is not None:
            self.size[domain] -= 1
            if not self.size[domain]:
                del self.size[domain]

    def copy(self) -> Self:
        """Return domains that go on by themselves."""
        twin = copy(self)
        twin.home, twin.size = self.home.copy(), self.size.copy()
        return twin


class TopologyCount:
    """How many of the pods that count stand in each domain that has nodes."""

    __slots__ = ("_admits", "_domains", "_namespace", "_pods", "divided")

    def __init__(
        self, admits: Admits, divided: Hashable, domains: Domains, namespace: str | None = None
    ) -> None:
        """Count the pods that `admits`, by the domains of their nodes, which are named `divided`.

        Where a namespace is given, only its pods count.
        """
        self._admits = admits
        self._namespace = namespace
        self.divided = divided
        self._domains = domains
        self._pods: dict[str, int] = {}

    @property
    def count(self) -> Mapping[str, int]:
        """Return domain -> pods. Every domain with a node is there, with 0 pods too."""
        return {domain: self._pods.get(domain, 0) for domain in self._domains.size}

    def admits(self, pod: Pod) -> bool:
        """Whether a pod is one of those that count."""
        return self._namespace in {None, pod.namespace} and self._admits(pod)

    def add(self, node_name: str, pods: int) -> None:
        """Count so many pods that are admitted in on a node, or out."""
        domain = self._domains.home.get(node_name)
        if domain is not None:
            self._pods[domain] = self._pods.get(domain, 0) + pods

    def over(self, domains: Domains) -> Self:
        """Return a count over a copy of its domains, which goes on by itself."""
        twin = copy(self)
        twin._domains, twin._pods = domains, self._pods.copy()  # noqa: SLF001 - it is of this class
        return twin


@dataclass(slots=True)
class _SameLabels:
    """Pods of one namespace with the same labels, all or none of them being deleted: each count admits all of them, or none."""

    one: Pod
    on: Counter[str] = field(default_factory=Counter)
    """Name of a node -> pods."""
    counts: list[TopologyCount] = field(default_factory=list)
    """Those that admit them."""


class TopologyCounts:
    """The counts of a snapshot. It follows the pods of a namespace from the first count that they matter to."""

    def __init__(self, nodes: Mapping[str, Node], standing: StandingPods) -> None:
        """Begin without a count. The nodes by name and the pods on them are the snapshot's own."""
        self._nodes, self._standing = nodes, standing
        self._domains: dict[Hashable, Domains] = {}
        self._counts: dict[Hashable, TopologyCount] = {}
        self._by_labels: defaultdict[str, dict[Hashable, _SameLabels]] = defaultdict(dict)
        """By namespace, and by what a count can see of a pod."""
        self._all = False
        """Whether the pods of all namespaces are followed."""

    def __call__(
        self,
        key: Hashable,
        admits: Admits,
        divided: Hashable,
        domain_of: DomainOf,
        namespace: str | None = None,
    ) -> TopologyCount:
        """Return the count of a key, made on first use.

        Args:
            key: names the count.
            admits: which pods count.
            divided: names the domains.
            domain_of: which domain a node is in.
            namespace: only its pods are admitted, where it is given.
        """
        if key in self._counts:
            return self._counts[key]
        if divided not in self._domains:
            self._domains[divided] = Domains(domain_of, self._nodes.values())
        asked = [*self._standing.namespaces] if namespace is None else [namespace]
        kinds = [same for each in asked for same in self._in(each).values()]
        self._all = self._all or namespace is None
        made = TopologyCount(admits, divided, self._domains[divided], namespace)
        self._counts[key] = made
        for same in kinds:
            if made.admits(same.one):
                same.counts.append(made)
                for node_name, count in same.on.items():
                    made.add(node_name, count)
        return made

    def change(self, pod: Pod, node_name: str, by: int) -> None:
        """Count a pod on a node in (1) or out (-1), after it came or went."""
        if self._all or pod.namespace in self._by_labels:
            same = self._of(pod)
            same.on[node_name] += by
            for count in same.counts:
                count.add(node_name, by)

    def add_node(self, node: Node) -> None:
        """Divide a node too."""
        for domains in self._domains.values():
            domains.add(node)

    def remove_node(self, name: str) -> None:
        """Leave out a node that has no pods any more."""
        for domains in self._domains.values():
            domains.remove(name)

    def over(self, nodes: Mapping[str, Node], standing: StandingPods) -> Self:
        """Return counts over a copy of the snapshot's nodes and pods, which go on by themselves."""
        twin = copy(self)
        twin._part(nodes, standing)  # noqa: SLF001 - it is of this class
        return twin

    def _part(self, nodes: Mapping[str, Node], standing: StandingPods) -> None:
        self._nodes, self._standing = nodes, standing
        self._domains = {key: domains.copy() for key, domains in self._domains.items()}
        counts = {id(c): c.over(self._domains[c.divided]) for c in self._counts.values()}
        self._counts = {key: counts[id(count)] for key, count in self._counts.items()}
        by_labels = {
            namespace: {
                key: _SameLabels(a.one, a.on.copy(), [counts[id(count)] for count in a.counts])
                for key, a in kinds.items()
            }
            for namespace, kinds in self._by_labels.items()
        }
        self._by_labels = defaultdict(dict, by_labels)

    def _in(self, namespace: str) -> dict[Hashable, _SameLabels]:
        """Return the pods of a namespace by what a count can see of them."""
        if namespace not in self._by_labels:
            for pod, node_name in self._standing.located(namespace):
                self._of(pod).on[node_name] += 1
        return self._by_labels[namespace]

    def _of(self, pod: Pod) -> _SameLabels:
        known = self._by_labels[pod.namespace]
        key = (frozenset(pod.labels.items()), pod.deleting is None)
        if key not in known:
            admitting = [count for count in self._counts.values() if count.admits(pod)]
            known[key] = _SameLabels(pod, counts=admitting)
        return known[key]
