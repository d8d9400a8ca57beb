"""The names Plimsoll writes on objects, and the well-known ones it reads: each stands here once."""

from __future__ import annotations

from typing import Final

PREFIX: Final = "plimsoll.dev/"

INTERRUPTION: Final = "plimsoll.dev/interruption"
"""On a Node: the annotation with the record, and the key of the taint."""

SURGE: Final = "plimsoll.dev/temporary"
"""On a workload: the annotation with what was changed for a while, and the value to restore."""

IGNORE: Final = "plimsoll.dev/ignore"
"""On a workload or pod, label or annotation: leave it alone when "true"."""

RENEW: Final = "plimsoll.dev/renew"
"""On a node group, tag: an instance that is drained on advice is replaced when "true"."""

NAMESPACE: Final = "plimsoll"
LEASE: Final = "drains"

DELETION_COST: Final = "controller.kubernetes.io/pod-deletion-cost"
RESTARTED: Final = "kubectl.kubernetes.io/restartedAt"
"""On a pod template: what `kubectl rollout restart` writes there."""
MIRROR: Final = "kubernetes.io/config.mirror"
ZONE: Final = "topology.kubernetes.io/zone"
ZONE_LABELS: Final = (ZONE, "topology.ebs.csi.aws.com/zone")
"""Where volumes ask for a zone: the well-known label, and that of the EBS driver."""
HOSTNAME: Final = "kubernetes.io/hostname"
INSTANCE_TYPE: Final = "node.kubernetes.io/instance-type"

CAPACITY_LABELS: Final = (
    "node.kubernetes.io/capacity",
    "karpenter.sh/capacity-type",
    "eks.amazonaws.com/capacityType",
)
"""Where a node may say `on-demand` or `spot`; the first that is there wins."""
