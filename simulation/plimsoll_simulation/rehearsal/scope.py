"""Which instances a rehearsal takes away: all spot instances, or those of a zone, a family or a pool."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import override

from plimsoll.domain.errors import BadInput
from plimsoll.domain.kubernetes import INSTANCE_TYPE, Node
from plimsoll.domain.observation import Observation

SPOT = "spot"


@dataclass(frozen=True, slots=True, kw_only=True)
class Scope:
    """What is reclaimed together; without a field all spot instances."""

    zone: str | None = None
    family: str | None = None
    """As in `m5d` of `m5d.large`."""
    instance_type: str | None = None

    def takes(self, instance_type: str, zone: str | None) -> bool:
        """Whether spot instances of this type and zone are reclaimed."""
        return (
            self.zone in {None, zone}
            and self.family in {None, instance_type.partition(".")[0]}
            and self.instance_type in {None, instance_type}
        )

    def nodes(self, seen: Observation) -> Sequence[Node]:
        """Return the nodes that go.

        Raises:
            BadInput: none does.
        """
        spot = [node for node in seen.nodes if node.capacity == SPOT]
        found = [node for node in spot if self.takes(type_of(node), node.zone)]
        if not found:
            there = sorted({f"{type_of(node)} in {node.zone}" for node in spot})
            raise BadInput(
                f"there is nothing like {self} (there are: {', '.join(there) or 'no spot nodes at all'}). "
                "A node is spot by its label node.kubernetes.io/capacity, or that of EKS or Karpenter"
            )
        return found

    @override
    def __str__(self) -> str:
        parts = [
            "every spot instance",
            f"of type {self.instance_type}" if self.instance_type else "",
            f"of the family {self.family}" if self.family else "",
            f"in {self.zone}" if self.zone else "",
        ]
        return " ".join(filter(None, parts))


def pool(text: str) -> Scope:
    """Return the scope of a capacity pool, as in `m5.large/us-east-1a`.

    Raises:
        BadInput: it is written otherwise.
    """
    instance_type, slash, zone = text.partition("/")
    if not (instance_type and slash and zone):
        raise BadInput(f"--pool {text}: write type and zone, as in m5.large/us-east-1a")
    return Scope(instance_type=instance_type, zone=zone)


def type_of(node: Node) -> str:
    """Return the instance type of a node as its label says it."""
    return node.labels.get(INSTANCE_TYPE, "unknown")
