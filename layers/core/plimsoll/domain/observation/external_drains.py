"""Nodes that somebody else empties, without a notice of AWS: what is guarded there is released.

Else the guard would keep the other drain from ending for ever. A taint by which a program says that
it takes a node away is enough, and so is a cordon of a node that AWS advises to leave: EKS and others
drain on that advice, while Plimsoll takes such nodes in turn. Of any other cordon nobody can tell
whether a drain follows, so the owner of the cluster decides that, by the policy.
"""

from __future__ import annotations

from typing import Final

from plimsoll.domain.interruptions import FOREIGN_CORDON, Policy, Response
from plimsoll.domain.kubernetes import Node

KARPENTER: Final = "karpenter.sh/disrupted"
TAINTS: Final = frozenset({KARPENTER, "karpenter.sh/disruption", "ToBeDeletedByClusterAutoscaler"})
"""Karpenter's from v1 on and before, and the Cluster Autoscaler's. Sources:
https://karpenter.sh/docs/concepts/disruption/#control-flow and
https://github.com/kubernetes/autoscaler/blob/master/cluster-autoscaler/FAQ.md"""
REBALANCE: Final = "rebalance-recommendation"
"""On which EKS drains spot nodes of managed node groups, and aws-node-termination-handler any node. Source:
https://docs.aws.amazon.com/eks/latest/userguide/managed-node-groups.html#managed-node-group-capacity-types"""
DRAIN: Final = "foreign-drain"
"""In the place of an interruption, on a pod that is released for such a drain."""


def why_drained(node: Node, policy: Policy) -> str | None:
    """Say by what somebody else empties a node; None where nobody does."""
    for taint in node.taints:
        if taint.key in TAINTS:
            return f"the taint {taint.key}"
    if node.unschedulable and (policy.of_kind(FOREIGN_CORDON) is Response.MOVE or _advised(node)):
        return "a cordon"
    return None


def _advised(node: Node) -> bool:
    """Whether AWS advises to leave a node, and Plimsoll has not cordoned it."""
    found = node.interruption
    return found is not None and (found.kind, found.cordoned) == (REBALANCE, None)
