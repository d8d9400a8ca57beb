"""Which nodes are interrupted, and which of their pods count: those that do not belong to the node."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from functools import cached_property
from typing import Final, Self

from plimsoll.domain.interruptions import ADVICE, NEVER, SCALE_DOWN, Interruption
from plimsoll.domain.kubernetes import Node, OwnerKind, Pod
from plimsoll.domain.observation.observation import Observation

STAYS_PUT: Final = {OwnerKind.DAEMON_SET, OwnerKind.NODE}
"""Owners whose pods belong to the node and end with it: daemons, and mirrors of static pods."""


@dataclass(frozen=True)
class InterruptedNodes:
    """The nodes with an open interruption, in order of urgency. Not slotted: look-ups are kept.

    The earliest deadline comes first, and then where the fewest pods wait for a replacement: what is
    begun is finished, and as many nodes as can be are empty in time.
    """

    nodes: tuple[Node, ...]

    @classmethod
    def of(cls, seen: Observation) -> Self:
        """Find them by the records that stand on the nodes themselves."""

        def urgency(node: Node) -> tuple[datetime, int, str]:
            deadline = None if node.interruption is None else node.interruption.deadline
            waiting = (p for p in seen.on_node.get(node.name, ()) if leaves(p) and not p.released)
            return deadline or NEVER, sum(p.deleting is None for p in waiting), node.name

        return cls(tuple(sorted(filter(_is_interrupted, seen.nodes), key=urgency)))

    @cached_property
    def turn(self) -> Mapping[str, int]:
        """By the name of the node: its place in the order of urgency."""
        return {node.name: turn for turn, node in enumerate(self.nodes)}

    @cached_property
    def names(self) -> frozenset[str]:
        """Their names."""
        return frozenset(n.name for n in self.nodes)

    @cached_property
    def interruption(self) -> Mapping[str, Interruption]:
        """By the name of the node."""
        return {n.name: found for n in self.nodes if (found := n.interruption)}


def _is_interrupted(node: Node) -> bool:
    """Whether its pods move. Those of a node that waits for its turn do not."""
    found = node.interruption
    if found is None or found.phase == "closed":
        return False
    patient = {*ADVICE, SCALE_DOWN}
    return found.cordoned is not None or any(n.kind not in patient for n in found.notices)


def leaves(pod: Pod) -> bool:
    """Whether a pod has to leave an interrupted node, and counts until it has."""
    return not (pod.finished or pod.mirror or (pod.owner and pod.owner.kind in STAYS_PUT))


def is_empty(seen: Observation, node: Node) -> bool:
    """Whether a node holds nothing but what belongs to it: no pod that would have to leave."""
    return not any(map(leaves, seen.on_node.get(node.name, ())))


def is_gone(seen: Observation, node: Node) -> bool:
    """Whether EC2 says now that a node's instance is off: an event may be of a former launch."""
    said = seen.instances.get(node.instance or "")
    return said is not None and said.off


def is_dead(seen: Observation, pod: Pod) -> bool:
    """Whether a pod ended with its node, whatever the API server still says of it."""
    if pod.node is None:
        return False
    node = seen.node.get(pod.node)
    return node is None or is_gone(seen, node)
