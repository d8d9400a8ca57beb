"""NodePools and NodeClaims of a drill's fleet, as Karpenter keeps them in the cluster.

Shapes and conditions: https://karpenter.sh/docs/concepts/nodepools/, https://karpenter.sh/docs/concepts/nodeclaims/;
kubernetes-sigs/karpenter, pkg/apis/v1
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any, Final

from plimsoll.domain.kubernetes import CAPACITY_LABELS, INSTANCE_TYPE, NODE_POOL, ZONE
from plimsoll_simulation.fake_aws.fleet import Group
from plimsoll_simulation.fake_aws.machines import Machine
from plimsoll_simulation.fake_aws.nodegroups import NodeGroupSpec

API_VERSION: Final = "karpenter.sh/v1"


def node_pool(group: Group) -> dict[str, Any]:
    """Return the NodePool of a group: its maximum is the limit of nodes."""
    spec = group.spec
    named = {
        CAPACITY_LABELS[1]: [spec.capacity],
        INSTANCE_TYPE: [spec.instance_type],
        ZONE: list(spec.zones),
    }
    return {
        "apiVersion": API_VERSION,
        "kind": "NodePool",
        "metadata": {"name": spec.name},
        "spec": {
            "template": {
                "metadata": {"labels": dict(spec.labels)},
                "spec": {
                    "requirements": [
                        {"key": key, "operator": "In", "values": values}
                        for key, values in named.items()
                    ],
                    "taints": [dict(taint) for taint in spec.taints],
                },
            },
            "limits": {"nodes": str(spec.max)},
        },
        "status": {"resources": {"nodes": str(len(group.alive))}},
    }


def node_claim(machine: Machine, now: datetime) -> dict[str, Any]:
    """Return the NodeClaim of an instance that was launched."""
    group = machine.group
    return _claim(group, machine.node, machine.launched) | {
        "status": {
            "providerID": f"aws:///{machine.zone}/{machine.id}",
            "allocatable": dict(group.allocatable),
            "conditions": [
                _condition("Launched", machine.launched, "Launched"),
                _condition("Registered", machine.ready, "Registered", holds=machine.ready <= now),
            ],
        }
    }


def failed_claim(group: NodeGroupSpec, name: str, at: datetime, message: str) -> dict[str, Any]:
    """Return a NodeClaim whose launch failed, for whatever reason but want of capacity."""
    told = _condition("Launched", at, "LaunchFailed", holds=False) | {"message": message}
    return _claim(group, name, at) | {"status": {"conditions": [told | {"status": "Unknown"}]}}


def _claim(group: NodeGroupSpec, name: str, created: datetime) -> dict[str, Any]:
    labels: Mapping[str, str] = {NODE_POOL: group.name, CAPACITY_LABELS[1]: group.capacity}
    return {
        "apiVersion": API_VERSION,
        "kind": "NodeClaim",
        "metadata": {
            "name": name,
            "labels": dict(labels),
            "creationTimestamp": created.isoformat(),
        },
        "spec": {},
    }


def _condition(what: str, at: datetime, reason: str, *, holds: bool = True) -> dict[str, Any]:
    return {
        "type": what,
        "status": "True" if holds else "False",
        "reason": reason,
        "message": "",
        "lastTransitionTime": at.isoformat(),
    }
