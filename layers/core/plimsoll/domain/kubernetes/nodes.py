"""Nodes as the planner sees them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime

from plimsoll.domain.interruptions import Interruption
from plimsoll.domain.kubernetes import names
from plimsoll.domain.kubernetes.quantities import Resources


@dataclass(frozen=True, slots=True, kw_only=True)
class Taint:
    """A taint; effects are NoSchedule, PreferNoSchedule and NoExecute."""

    key: str
    value: str = ""
    effect: str = "NoSchedule"


@dataclass(frozen=True, slots=True, kw_only=True)
class Node:
    """One Node, with the interruption that is recorded on it, if any."""

    name: str
    uid: str
    resource_version: str
    labels: Mapping[str, str]
    annotations: Mapping[str, str] = field(default_factory=dict)
    taints: tuple[Taint, ...] = ()
    unschedulable: bool = False
    ready: bool = True
    ready_since: datetime | None = None
    """When the Ready condition last changed; None where it does not tell."""
    allocatable: Resources
    volume_limits: Mapping[str, int] = field(default_factory=dict)
    """The most volumes that may be attached to it, by CSI driver; out of its CSINode."""
    instance: str | None = None
    """The EC2 instance id out of `spec.providerID`; None for nodes of other clouds."""
    zone: str | None = None
    capacity: str | None = None
    """`on-demand`, `spot`, or None where no label says."""
    created: datetime
    interruption: Interruption | None = None
    unreadable: str | None = None
    """Why the record on the node is not believed: the next notice replaces it."""
    newer_record: bool = False
    """A newer Plimsoll wrote the record: the node is left to it."""

    @property
    def staying(self) -> bool:
        """Whether new pods may be counted on this node: Ready, not cordoned, not interrupted."""
        return self.ready and not self.unschedulable and self.interruption is None


def refuse_twins(nodes: Sequence[Node]) -> Sequence[Node]:
    """Take the instance from Nodes that claim the same one: at most one of them tells the truth.

    What concerns only the Node itself goes on; nothing is asked of AWS in its name, nor believed.
    """
    claims = Counter(node.instance for node in nodes if node.instance is not None)
    return [
        replace(node, instance=None) if node.instance and claims[node.instance] > 1 else node
        for node in nodes
    ]


def capacity_of(labels: Mapping[str, str]) -> str | None:
    """Return `on-demand` or `spot` as the first capacity label says, or None. What is reserved is no spot."""
    for name in names.CAPACITY_LABELS:
        if name in labels:
            said = labels[name].lower().replace("_", "-")
            said = "on-demand" if said in {"reserved", "capacity-block"} else said
            return said if said in {"on-demand", "spot"} else None
    return None
