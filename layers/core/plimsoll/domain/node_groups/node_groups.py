"""Node groups: what can be asked for more nodes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime

from plimsoll.domain.interruptions import LifecycleHook
from plimsoll.domain.kubernetes import HOOK_MARK, Requirement, Resources, Taint
from plimsoll.domain.node_groups.launch_failures import Refusal


def is_our_hook(name: str, metadata: str) -> bool:
    """Whether the owner of a lifecycle hook gave it to Plimsoll, which heartbeats and completes no other."""
    return name.startswith("plimsoll") or HOOK_MARK in metadata


type Asked = tuple[str, str | None]
"""The key of a node group that is asked for nodes, and in which zone; None: the group chooses it, or nobody knows."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeTemplate:
    """What a new node of a group will look like, but for name and zone."""

    labels: Mapping[str, str]
    taints: tuple[Taint, ...] = ()
    allocatable: Resources
    choices: tuple[Requirement, ...] | None = None
    """What a group that chooses other labels for a pod demands of them; None: it chooses none."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeGroup:
    """One group of nodes that can grow."""

    kind: str
    """The line in the table of node-group kinds, for example `asg`."""
    name: str
    capacity: str
    """`on-demand` or `spot`."""
    zones: tuple[str, ...]
    desired: int
    min_size: int
    max_size: int
    instances: frozenset[str] = field(default_factory=frozenset)
    """Ids of its instances in service or on the way."""
    zone_of: Mapping[str, str] = field(default_factory=dict)
    """Instance -> its zone, as far as the group tells."""
    instance_types: tuple[str, ...] = ()
    subnets: tuple[str, ...] = ()
    """Ids of the subnets that it launches into, as far as they are known."""
    image: str | None = None
    """Id of the image that its launch template names, as far as that is known."""
    template: NodeTemplate | None = None
    """None when nothing tells what a new node would be: such a group is never chosen."""
    launchable: bool = False
    """Whether LaunchInstances may be tried (launch template, no mixed-instances policy)."""
    provisions: bool = False
    """Whether nodes are made for Pending pods without being asked for: then nothing is asked of it."""
    launches: bool = True
    """Whether it launches what it is short of: not while its process `Launch` is suspended."""
    closed: str | None = None
    """Why it takes no more nodes, whatever is asked, in words that follow its name."""
    warm: int = 0
    """How many instances of its warm pool have only to be started."""
    rebalances: bool = False
    """Whether it launches by itself in place of an instance that AWS advises to replace."""
    asked: datetime | None = None
    """When the newest of the nodes that it is to have was asked for, as far as that is known."""
    launched: Mapping[str, datetime] = field(default_factory=dict)
    """Instance -> when its launch began; read, of the latest, only while nodes are on the way."""
    refusals: tuple[Refusal, ...] = ()
    """Why launches failed, the newest first; read only while nodes are on the way."""
    waiting: frozenset[str] = frozenset()
    """Ids of its instances that wait for the hooks."""
    hooks: tuple[LifecycleHook, ...] = ()
    """Read only while an instance waits."""
    may_grow: bool = True
    """Whether its owner opted in, by a tag; IAM allows no growth without."""
    renew: bool = False
    """Its owner lets us terminate empty instances: those that AWS advises to replace, and those we added."""

    @property
    def key(self) -> str:
        """What it is told apart by: groups of two kinds may have one name."""
        return f"{self.kind}/{self.name}"

    @property
    def grows(self) -> bool:
        """Whether it takes more nodes, up to its maximum."""
        return self.may_grow and self.launches and self.closed is None

    @property
    def addable_nodes(self) -> int:
        """How many nodes more it may hold."""
        return max(0, self.max_size - self.desired) if self.grows else 0
