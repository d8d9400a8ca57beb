"""Counting pods by topology domain, kept up to date as pods and nodes come and go.

Pod affinity, anti-affinity and topology spread all ask the same: how many pods of some kind stand
in each zone, host or other domain. A count is made when the first pod asks, and then follows every
change of the snapshot, so that the next pod's answer costs nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from copy import copy
from typing import Protocol, Self

from plimsoll.domain.nodes import Node
from plimsoll.domain.pods import Pod

type FilterReason = Callable[[Node], str | None]
"""Says why a node will not do for the pod at hand, in the scheduler's words."""
type Admits = Callable[[Pod], bool]
type DomainOf = Callable[[Node], str | None]


class TopologyCount:
    """How many of the pods that count stand in each domain that has nodes."""

    __slots__ = ("_admits", "_domain_of", "_home", "_size", "count")

    def __init__(self, admits: Admits, domain_of: DomainOf) -> None:
        """Count the pods that `admits`; a node for which `domain_of` gives None is left out."""
        self._admits = admits
        self._domain_of = domain_of
        self._home: dict[str, str] = {}
        self._size: dict[str, int] = {}
        self.count: dict[str, int] = {}
        """Domain -> pods. Every domain with a node is there, with 0 pods too."""

    def add_node(self, node: Node) -> None:
        """Count in a node that has no pods yet."""
        domain = self._domain_of(node)
        if domain is not None:
            self._home[node.name] = domain
            self._size[domain] = self._size.get(domain, 0) + 1
            self.count.setdefault(domain, 0)

    def remove_node(self, name: str) -> None:
        """Leave out a node whose pods have been taken off; its domain may vanish with it."""
        domain = self._home.pop(name, None)
        if domain is not None:
            self._size[domain] -= 1
            if not self._size[domain]:
                del self._size[domain], self.count[domain]

    def change(self, pod: Pod, node_name: str, by: int) -> None:
        """Count a pod on a node in (1) or out (-1)."""
        domain = self._home.get(node_name)
        if domain is not None and self._admits(pod):
            self.count[domain] += by

    def copy(self) -> Self:
        """Return a count that goes on by itself."""
        twin = copy(self)
        twin._part()  # noqa: SLF001 - it is of this class
        return twin

    def _part(self) -> None:
        self._home, self._size = self._home.copy(), self._size.copy()
        self.count = self.count.copy()


class TopologyCounts(Protocol):
    """Where counts are kept: the same key gives the same count, made on first use."""

    def __call__(
        self, key: Hashable, admits: Admits, domain_of: DomainOf, namespace: str | None = None
    ) -> TopologyCount:
        """Return the count of a key. Only pods of `namespace` are admitted, where it is given."""
        ...
