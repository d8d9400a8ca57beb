"""What fits where: the scheduler's predicates over a working picture that can be changed.

Signatures first; the thinking follows.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Self

from plimsoll.domain.nodes import Node
from plimsoll.domain.pods import Pod
from plimsoll.domain.quantities import Resources
from plimsoll.domain.workloads import Claim


class Board:
    """Nodes with the pods that stand on them; a pod is known by its uid, a node by its name."""

    def __init__(
        self,
        nodes: Iterable[Node],
        pods: Iterable[Pod],
        claims: Mapping[tuple[str, str], Claim] | None = None,
    ) -> None:
        """Place every pod that names a node of the board and is not finished."""
        raise NotImplementedError

    @property
    def nodes(self) -> Mapping[str, Node]:
        """The nodes by name."""
        raise NotImplementedError

    def on(self, node_name: str) -> Sequence[Pod]:
        """Return the pods on a node."""
        raise NotImplementedError

    def where(self, pod: Pod) -> str | None:
        """Return the name of the node on which the board holds a pod."""
        raise NotImplementedError

    def free(self, node_name: str) -> Resources:
        """Return what a node has left."""
        raise NotImplementedError

    def why_not(self, pod: Pod, node: Node) -> str | None:
        """Say in the scheduler's words why a pod does not fit; None when it fits."""
        raise NotImplementedError

    def candidates(self, pod: Pod) -> list[Node]:
        """Return the nodes that a pod fits on, in the order in which they were added."""
        raise NotImplementedError

    def best(self, pod: Pod, candidates: Sequence[Node]) -> Node:
        """Choose one of the nodes (at least one) as the scheduler's default scoring would."""
        raise NotImplementedError

    def place(self, pod: Pod, node_name: str) -> None:
        """Put a pod on a node without asking whether it fits; a pod already there is replaced."""
        raise NotImplementedError

    def remove(self, pod: Pod) -> None:
        """Take a pod off; nothing happens where it is not on the board."""
        raise NotImplementedError

    def add_node(self, node: Node) -> None:
        """Add a node, or put a changed one in place of the old; its pods stay on it."""
        raise NotImplementedError

    def remove_node(self, node_name: str) -> None:
        """Take a node off with its pods."""
        raise NotImplementedError

    def set_claim(self, claim: Claim) -> None:
        """Learn of a claim, for example that it was bound."""
        raise NotImplementedError

    def copy(self) -> Self:
        """Return a board to plan on; changes to one are not seen by the other."""
        raise NotImplementedError
