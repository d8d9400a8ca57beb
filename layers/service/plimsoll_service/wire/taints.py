"""Interruption taints that an agent forwards ahead of its snapshots."""

from __future__ import annotations

from typing import Annotated, Final

from msgspec import Meta, Struct

from plimsoll_service.wire.documents import Count

MOST_INSTANCES: Final = 100
"""Instances in one request."""
FORWARDED: Final = (
    "aws-node-termination-handler/spot-itn",
    "aws-node-termination-handler/scheduled-maintenance",
)
"""Taints of other handlers that name an interruption of which EC2 can be asked. A recommendation to rebalance
EC2 tells nobody twice, and Karpenter's taint is the same for whatever it disrupts a node for.

https://github.com/aws/aws-node-termination-handler/blob/main/pkg/node/node.go
https://karpenter.sh/docs/concepts/disruption/
"""

type InstanceId = Annotated[str, Meta(pattern=r"^i-([0-9a-f]{8}|[0-9a-f]{17})\Z")]
"""As the interruption path reads it: an event that it cannot read would ring its alarm."""


class TaintedInstances(Struct, frozen=True, kw_only=True):
    """Instances on whose Nodes another handler's interruption taint stands."""

    instances: Annotated[tuple[InstanceId, ...], Meta(min_length=1, max_length=MOST_INSTANCES)]


class Forwarded(Struct, frozen=True, kw_only=True):
    """The answer: 202. Of taints EC2 is asked; what it says leads to a drain, and nothing else does."""

    forwarded: Count
    """How many instances, or changes."""
