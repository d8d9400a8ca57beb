"""What pods require of a node itself, and the nodes that meet it, whatever else stands on them.

Thousands of pods share a few requirements. The nodes that meet one are found when the first pod asks, and are
then followed as nodes come and go.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from copy import copy
from typing import NamedTuple, Self

from plimsoll.domain.kubernetes import Node, NodeRequirements, Scheduling, holds, why_never


def in_reach(volumes: NodeRequirements, node: Node) -> bool:
    """https://kubernetes.io/docs/concepts/storage/persistent-volumes/#node-affinity."""
    return all(any(holds(term, node) for term in terms) for terms in volumes)


class Requirement(NamedTuple):
    """What a template and its volumes require of a node: equal for all templates that require the same."""

    template: Hashable
    volumes: NodeRequirements

    def met_by(self, node: Node, scheduling: Scheduling) -> bool:
        """Whether a node meets it; `scheduling` is that of any template which requires it."""
        return in_reach(self.volumes, node) and why_never(scheduling, node) is None


class SuitableNodes:
    """The nodes of a snapshot by the requirement that they meet."""

    def __init__(self, nodes: Mapping[str, Node]) -> None:
        """Begin without a requirement. The nodes, by name, are the snapshot's own."""
        self._nodes = nodes
        self._meeting: dict[Requirement, tuple[Scheduling, tuple[str, ...]]] = {}
        self._templates: dict[int, tuple[Scheduling, Hashable]] = {}
        """By identity of the template: kept beside it, so that the identity stays its own."""

    def requirement(self, scheduling: Scheduling, volumes: NodeRequirements) -> Requirement:
        """Return what a template with such volumes requires."""
        known = self._templates.get(id(scheduling))
        if known is None:
            selector = tuple(sorted(scheduling.node_selector.items()))
            template = (
                selector,
                scheduling.node_terms,
                scheduling.tolerations,
                scheduling.devices,
            )
            known = self._templates[id(scheduling)] = (scheduling, template)
        return Requirement(known[1], volumes)

    def of(self, scheduling: Scheduling, volumes: NodeRequirements) -> tuple[str, ...]:
        """Return the names of the nodes that meet what a template requires, in the order in which they were added."""
        requirement = self.requirement(scheduling, volumes)
        known = self._meeting.get(requirement)
        if known is None:
            nodes = self._nodes.values()
            names = (node.name for node in nodes if requirement.met_by(node, scheduling))
            known = self._meeting[requirement] = (scheduling, tuple(names))
        return known[1]

    def add(self, node: Node) -> None:
        """Look at a node too."""
        for requirement, (scheduling, names) in self._meeting.items():
            if requirement.met_by(node, scheduling):
                self._meeting[requirement] = (scheduling, (*names, node.name))

    def remove(self, name: str) -> None:
        """Leave out a node."""
        for requirement, (scheduling, names) in self._meeting.items():
            if name in names:
                rest = tuple(each for each in names if each != name)
                self._meeting[requirement] = (scheduling, rest)

    def over(self, nodes: Mapping[str, Node]) -> Self:
        """Return the same for a copy of the snapshot's nodes, which goes on by itself."""
        twin = copy(self)
        twin._nodes = nodes  # noqa: SLF001 - it is of this class
        twin._meeting, twin._templates = self._meeting.copy(), self._templates.copy()  # noqa: SLF001
        return twin
