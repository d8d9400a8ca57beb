"""Counting pods by topology domain, kept up to date as pods and nodes come and go.

Pod affinity, anti-affinity and topology spread all ask the same: how many pods of some kind stand
in each zone, host or other domain. A count is made when the first pod asks, and then follows every
change of the snapshot, so that the next pod's answer costs nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping
from copy import copy
from typing import Protocol, Self

from plimsoll.domain.nodes import Node
from plimsoll.domain.pods import Pod

type FilterReason = Callable[[Node], str | None]
"""Says why a node will not do for the pod at hand, in the scheduler's words."""
type Admits = Callable[[Pod], bool]
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

    __slots__ = ("_admits", "_domains", "_pods", "divided")

    def __init__(self, admits: Admits, divided: Hashable, domains: Domains) -> None:
        """Count the pods that `admits`, by the domains of their nodes, which are named `divided`."""
        self._admits = admits
        self.divided = divided
        self._domains = domains
        self._pods: dict[str, int] = {}

    @property
    def count(self) -> Mapping[str, int]:
        """Return domain -> pods. Every domain with a node is there, with 0 pods too."""
        return {domain: self._pods.get(domain, 0) for domain in self._domains.size}

    def change(self, pod: Pod, node_name: str, by: int) -> None:
        """Count a pod on a node in (1) or out (-1)."""
        domain = self._domains.home.get(node_name)
        if domain is not None and self._admits(pod):
            self._pods[domain] = self._pods.get(domain, 0) + by

    def over(self, domains: Domains) -> Self:
        """Return a count over a copy of its domains, which goes on by itself."""
        twin = copy(self)
        twin._domains, twin._pods = domains, self._pods.copy()  # noqa: SLF001 - it is of this class
        return twin


class TopologyCounts(Protocol):
    """Where counts are kept: the same key gives the same count, made on first use."""

    def __call__(
        self,
        key: Hashable,
        admits: Admits,
        divided: Hashable,
        domain_of: DomainOf,
        namespace: str | None = None,
    ) -> TopologyCount:
        """Return the count of a key.

        Args:
            key: names the count.
            admits: which pods count.
            divided: names the domains.
            domain_of: which domain a node is in.
            namespace: only its pods are admitted, where it is given.
        """
        ...
