"""What every action is: data that says what to do to what and why, and the verbs it takes.

A plan holds actions; a dry run prints them; the executor carries them out in the order of their
waves, those of one wave side by side. Adding an action is a file here and a line in `Action`.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum

from plimsoll.domain.nodes import Node
from plimsoll.domain.pods import Pod


class Wave(IntEnum):
    """The order of actions within a plan."""

    CORDON = 0
    """First, so that nothing new lands on a node that is going."""
    CAPACITY = 1
    """New nodes take the longest."""
    REPLACE = 2
    """More replicas, before any pod leaves."""
    LEAVE = 3
    """Pods that go."""
    CLOSE = 4
    """Bookkeeping on nodes that are empty."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AboutNode:
    """What actions on a node have in common."""

    node: Node
    reason: str

    @property
    def target(self) -> str:
        """The node."""
        return f"Node {self.node.name}"


@dataclass(frozen=True, slots=True, kw_only=True)
class AboutPod:
    """What actions on a pod have in common."""

    pod: Pod
    reason: str

    @property
    def target(self) -> str:
        """The pod."""
        return f"Pod {self.pod}"
