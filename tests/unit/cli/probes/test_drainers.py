"""Programs that drain nodes, as nodes of a cluster tell of them."""

from __future__ import annotations

from typing import Any

import pytest

from plimsoll_cli.probes.drainers import AUTOSCALER, HANDLER, KARPENTER, marks_of


@pytest.mark.parametrize(
    ("spec", "labels", "who"),
    [
        ({"taints": [{"key": "karpenter.sh/disrupted", "effect": "NoSchedule"}]}, {}, KARPENTER),
        (
            {"taints": [{"key": "ToBeDeletedByClusterAutoscaler", "effect": "NoSchedule"}]},
            {},
            AUTOSCALER,
        ),
        ({"unschedulable": True}, {f"{HANDLER}/action": "cordon-and-drain"}, HANDLER),
        ({"unschedulable": True}, {}, "a cordon by kubectl-cordon"),
        ({}, {}, None),
    ],
)
def test_who_drains_a_node_just_now_is_known_by_its_taints_labels_and_field_managers(
    spec, labels, who
):
    owned: dict[str, Any] = {"f:spec": {"f:unschedulable": {}}}
    managers = [
        {"manager": "kubelet", "fieldsV1": {"f:metadata": {}}},
        {"manager": "kubectl-cordon", "fieldsV1": owned},
    ]
    metadata = {"name": "spot-1", "labels": labels, "managedFields": managers}
    assert marks_of([{"metadata": metadata, "spec": spec}]) == ({} if who is None else {who: 1})
