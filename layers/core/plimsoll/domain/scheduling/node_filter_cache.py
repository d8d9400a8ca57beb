"""What pods require of a node itself, and the nodes that meet it, whatever else stands on them.

Thousands of pods share a few requirements. The nodes that meet one are found when the first pod asks, and are
then followed as nodes come and go.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping
from copy import copy
from typing import NamedTuple, Self, override

from plimsoll.domain.kubernetes import Node, NodeRequirements, Scheduling, holds, why_never


def in_reach(volumes: NodeRequirements, node: Node) -> bool:
    """https://kubernetes.io/docs/concepts/storage/persistent-volumes/#node-affinity."""
    return all(any(holds(term, node) for term in terms) for terms in volumes)


class Template:
    """What a template requires of a node. It may hold thousands of values, so it is hashed once."""

    __slots__ = ("_hash", "_says")

    def __init__(self, scheduling: Scheduling) -> None:
        """Remember what of a template concerns a node itself."""
        self._says: Hashable = (
            tuple(sorted(scheduling.node_selector.items())),
            scheduling.node_terms,
            scheduling.tolerations,
            scheduling.devices,
        )
        self._hash = hash(self._says)

    @override
    def __hash__(self) -> int:
        return self._hash

    @override
    def __eq__(self, other: object) -> bool:
        return self is other or (
            isinstance(other, Template) and self._hash == other._hash and self._says == other._says
        )


class Requirement(NamedTuple):
    """What a template and its volumes require of a node: equal for all templates that require the same."""

    template: Template
    volumes: NodeRequirements

    def met_by(self, node: Node, scheduling: Scheduling) -> bool:
        """Whether a node meets it; `scheduling` is that of any template which requires it."""
        return in_reach(self.volumes, node) and why_never(scheduling, node) is None


class _Meeting:
    """The nodes that meet one requirement. Each kind of node is compared once: most differ in nothing that it names."""

    def __init__(
        self, requirement: Requirement, scheduling: Scheduling, nodes: Iterable[Node]
    ) -> None:
        self._requirement = requirement
        self._scheduling = scheduling
        terms = [
            *(scheduling.node_terms or ()),
            *(term for terms in requirement.volumes for term in terms),
        ]
        self._keys = tuple(
            {*scheduling.node_selector, *(e.key for term in terms for e in term.expressions)}
        )
        self._named = any(term.fields for term in terms)
        self._verdicts: dict[Hashable, bool] = {}
        self._names = tuple(node.name for node in nodes if self.has(node))
        self._gone: set[str] = set()
        """Left out of the names when these are asked for: a thousand nodes that go cost one pass."""

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the nodes, in the order in which they were added."""
        if self._gone:
            self._names = tuple(name for name in self._names if name not in self._gone)
            self._gone = set()
        return self._names

    def has(self, node: Node) -> bool:
        """Whether a node meets the requirement."""
        kind = (
            tuple(map(node.labels.get, self._keys)),
            node.taints,
            node.unschedulable,
            node.ready,
            node.name if self._named else None,
        )
        known = self._verdicts.get(kind)
        if known is None:
            known = self._verdicts[kind] = self._requirement.met_by(node, self._scheduling)
        return known

    def add(self, node: Node) -> None:
        """Look at a node too."""
        if self.has(node):
            self._names = (*self.names, node.name)

    def remove(self, name: str) -> None:
        """Leave out a node."""
        self._gone.add(name)

    def over(self) -> Self:
        """Return the same for a copy of the nodes. What was compared holds for both."""
        twin = copy(self)
        twin._gone = self._gone.copy()  # noqa: SLF001 - it is of this class
        return twin


class SuitableNodes:
    """The nodes of a snapshot by the requirement that they meet."""

    def __init__(self, nodes: Mapping[str, Node]) -> None:
        """Begin without a requirement. The nodes, by name, are the snapshot's own."""
        self._nodes = nodes
        self._meeting: dict[Requirement, _Meeting] = {}
        self._templates: dict[int, tuple[Scheduling, Template]] = {}
        """By identity of the template: kept beside it, so that the identity stays its own."""
        self._equal: dict[Template, Template] = {}
        """One for all that are equal: to find it again is then no comparison."""

    def requirement(self, scheduling: Scheduling, volumes: NodeRequirements) -> Requirement:
        """Return what a template with such volumes requires."""
        known = self._templates.get(id(scheduling))
        if known is None:
            made = Template(scheduling)
            known = scheduling, self._equal.setdefault(made, made)
            self._templates[id(scheduling)] = known
        return Requirement(known[1], volumes)

    def of(self, scheduling: Scheduling, volumes: NodeRequirements) -> tuple[str, ...]:
        """Return the names of the nodes that meet what a template requires, in the order in which they were added."""
        return self._met(scheduling, volumes).names

    def takes(self, node: Node, scheduling: Scheduling, volumes: NodeRequirements) -> bool:
        """Whether a node meets what a template requires."""
        return self._met(scheduling, volumes).has(node)

    def _met(self, scheduling: Scheduling, volumes: NodeRequirements) -> _Meeting:
        requirement = self.requirement(scheduling, volumes)
        known = self._meeting.get(requirement)
        if known is None:
            known = _Meeting(requirement, scheduling, self._nodes.values())
            self._meeting[requirement] = known
        return known

    def add(self, node: Node) -> None:
        """Look at a node too."""
        for meeting in self._meeting.values():
            meeting.add(node)

    def remove(self, name: str) -> None:
        """Leave out a node."""
        for meeting in self._meeting.values():
            meeting.remove(name)

    def over(self, nodes: Mapping[str, Node]) -> Self:
        """Return the same for a copy of the snapshot's nodes, which goes on by itself."""
        twin = copy(self)
        twin._nodes = nodes  # noqa: SLF001 - it is of this class
        twin._meeting = {each: meeting.over() for each, meeting in self._meeting.items()}  # noqa: SLF001
        twin._templates, twin._equal = self._templates.copy(), self._equal.copy()  # noqa: SLF001
        return twin
