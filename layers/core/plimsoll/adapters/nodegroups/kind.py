"""What a kind of node group can do.

A new kind is one file beside this one, and one line in the table in `groups`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, ClassVar, Protocol

from plimsoll.domain.kubernetes import Node
from plimsoll.domain.node_groups import GroupMaximum, NodeGroup, NotGrown

if TYPE_CHECKING:
    from plimsoll.adapters.kubernetes.calls import Call
    from plimsoll.adapters.kubernetes.requests import Requests
    from plimsoll.adapters.nodegroups.account import Account

type Warn = Callable[[str], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class Access:
    """What a kind of node group is read and grown through."""

    account: Account
    """AWS, in the cluster's region."""
    api: Callable[[], Requests]
    """The cluster's API. It connects at its first use: most kinds never ask it."""
    cluster: str
    """The cluster's name in tags, and in EKS."""
    warn: Warn
    """Called with what went another way than it should."""


class Kind(Protocol):
    """The node groups of one kind, of one cluster."""

    calls: ClassVar[tuple[Call, ...]]
    """What it calls in the cluster's API; `infra/cluster/rbac.yaml` grants these."""

    def __init__(self, access: Access) -> None: ...

    def list(self, nodes: Sequence[Node]) -> Sequence[NodeGroup]:
        """Return the groups; existing nodes tell what a new one will be like."""

    def grow(self, group: NodeGroup, add: int, zone: str | None, token: str) -> int:
        """Ask for more nodes and return how many were promised."""


def target_of(group: NodeGroup, add: int, maximum: int, now: datetime) -> int:
    """Return what the desired capacity shall be at least.

    That is the desired capacity which the decision was made on, plus what it asks for, whoever
    raised it so far. So the same request sent twice counts once, without a memory of its own; and
    when an autoscaler asked at the same time the two requests count once, which the next round of
    the reconcile sees and makes up for.

    Raises:
        NotGrown: the group may not grow at all.
    """
    if group.desired >= maximum:
        full = f"{group.kind} {group.name} is at its maximum of {maximum} nodes"
        raise NotGrown(f"raise {group.name} by {add}", GroupMaximum(at=now, why=full))
    return min(group.desired + add, maximum)
