"""What a kind of node group can do.

A new kind is one file beside this one, and one line in the table in `groups`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Protocol

from plimsoll.domain.errors import Refused
from plimsoll.domain.groups import NodeGroup
from plimsoll.domain.nodes import Node

if TYPE_CHECKING:
    from plimsoll.adapters.nodegroups.account import Account

type Warn = Callable[[str], None]


class Kind(Protocol):
    """The node groups of one kind, of one cluster."""

    def __init__(self, account: Account, cluster: str, warn: Warn) -> None: ...

    def list(self, nodes: Sequence[Node]) -> Sequence[NodeGroup]:
        """Return the groups; existing nodes tell what a new one will be like."""

    def grow(self, group: NodeGroup, add: int, zone: str | None, token: str) -> int:
        """Ask for more nodes and return how many were promised."""


def target_of(group: NodeGroup, add: int, maximum: int) -> int:
    """Return what the desired capacity shall be at least.

    That is the desired capacity which the decision was made on, plus what it asks for, whoever
    raised it so far. So the same ask sent twice asks once, without a memory of its own; and when an
    autoscaler asked at the same time the two asks count once, which the next look sees and mends.

    Raises:
        Refused: the group may not grow at all.
    """
    if group.desired >= maximum:
        raise Refused(f"{group.kind} {group.name} is at its maximum of {maximum} nodes")
    return min(group.desired + add, maximum)
