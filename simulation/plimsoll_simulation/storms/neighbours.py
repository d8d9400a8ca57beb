"""A storm beside another program that drains, with workloads guarded or not."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Final

from plimsoll_simulation.fake_aws.nodegroups import KARPENTER, GroupKind, NodeGroupSpec
from plimsoll_simulation.scenario.clusters import OtherControllerName
from plimsoll_simulation.storms.model import Storm

DRAINS: Final[Mapping[OtherControllerName, GroupKind | None]] = {
    "cluster-autoscaler": None,
    "karpenter": "karpenter",
    "karpenter-consolidation": "karpenter",
    "kubectl-drain": None,
    "managed-node-group": "eks-nodegroup",
    "nth": None,
    "nth-imds": None,
}
"""Other controllers that drain -> the one kind of node group that they do it of; None: any."""

QUEUED: Final[frozenset[OtherControllerName]] = frozenset(
    {"karpenter", "karpenter-consolidation", "nth"}
)
"""Those that hear of interruptions from a queue."""
QUEUE_DELAY_SECONDS: Final = 15


def beside(storm: Storm, other_controller: OtherControllerName, *, guarded: bool) -> Storm:
    """Return a storm in which another controller acts too, and has spot nodes of its own kind to act on.

    In storms of odd seeds its queue, if it has one, holds messages back.

    Args:
        storm: as it was drawn. Its static groups stay: they are somebody's own machines.
        other_controller: one that drains.
        guarded: whether every Deployment opts in to the standing guard.
    """
    kind = DRAINS[other_controller]
    delayed = other_controller in QUEUED and storm.seed % 2
    return replace(
        storm,
        groups=tuple(_of_kind(group, kind) for group in storm.groups),
        workloads=tuple(
            replace(w, guarded=guarded and w.kind == "Deployment") for w in storm.workloads
        ),
        other_controllers=(*storm.other_controllers, other_controller),
        queue_delay_seconds=QUEUE_DELAY_SECONDS if delayed else 0,
    )


def _of_kind(group: NodeGroupSpec, kind: GroupKind | None) -> NodeGroupSpec:
    if kind is None or group.kind == "static" or group.capacity != "spot":
        return group
    # A NodePool has no tags of ours: what Karpenter made, Karpenter takes away.
    renew = group.renew and kind != KARPENTER
    return group.model_copy(update={"kind": kind, "renew": renew})
