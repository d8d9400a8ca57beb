"""A node group of a drill's fleet, as it is declared."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from plimsoll_testbed.model.durations import Span

type Capacity = Literal["on-demand", "spot"]
type GroupKind = Literal["asg", "eks-nodegroup", "static"]


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeGroupSpec:
    """A node group at the start."""

    name: str
    kind: GroupKind
    capacity: Capacity
    instance_type: str
    zones: tuple[str, ...]
    size: int
    max: int
    startup: Span
    allocatable: Mapping[str, str]
    labels: Mapping[str, str] = field(default_factory=dict)
    taints: tuple[Mapping[str, str], ...] = ()
    price: float = 1.0
    """USD per hour of one on-demand instance, also where the group is spot."""
