"""The files of a plan for `plimsoll gpu apply`: the plan itself, and the names of layouts that it needs granted."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from hashlib import sha256
from typing import Any, Final

import msgspec
import yaml

from plimsoll.domain.kubernetes import GPU, MIG_SLICES, NAMESPACE
from plimsoll_service.domain.gpu import (
    CARDS,
    WHOLE_GPU,
    FleetPlan,
    Layout,
    MigGeometries,
    geometries_of,
    layout_name,
    supply,
)
from plimsoll_service.wire.gpu_plan import GRANTED, ConfigSource, GpuPlan, NodeChange

PLAN: Final = "plan.json"
"""The plan that `plimsoll gpu apply` reads."""
GRANTS: Final = "grants.yaml"
ACCOUNT: Final = "plimsoll-gpu"
"""The ServiceAccount of infra/agent/gpu-apply."""
CONFIG_KEY: Final = "config.yaml"
"""In the ConfigMap of mig-manager."""
_GRANTS: Final = f"""\
# Lets {ACCOUNT} (infra/agent/gpu-apply) set the layouts of this plan, and those that its nodes have now, and no other.
"""


def apply_plan(
    plans: Mapping[str, FleetPlan], uids: Mapping[str, str], layouts: Mapping[str, Any]
) -> GpuPlan:
    """Return what `plimsoll-gpu` is to do: the nodes that change, and which GPUs each shall show then.

    Args:
        plans: by GPU model.
        uids: of the nodes, by name.
        layouts: the ConfigMap of mig-manager.
    """
    source = ConfigSource(
        namespace=layouts["metadata"]["namespace"],
        name=layouts["metadata"]["name"],
        key=CONFIG_KEY,
        sha256=sha256(layouts["data"][CONFIG_KEY].encode()).hexdigest(),
    )
    nodes = (
        NodeChange(
            name=name,
            uid=uids[name],
            value=layout_name(geometries, after),
            allocatable={
                GPU if profile == WHOLE_GPU else f"{MIG_SLICES}{profile}": number
                for profile, number in geometries.by_name(supply(after)).items()
            },
        )
        for name, geometries, after in changes(plans)
    )
    return GpuPlan(config=source, nodes=tuple(nodes))


def text_of(plan: GpuPlan) -> str:
    """Return a plan as it stands in the file and in the ConfigMap."""
    return msgspec.json.format(msgspec.json.encode(plan)).decode() + "\n"


def grants(names: Iterable[str]) -> str:
    """Return the ClusterRole that grants names of layouts to `plimsoll-gpu`, and its binding."""
    (group, resource, verb), rbac = GRANTED, "rbac.authorization.k8s.io"
    metadata = {"name": f"{ACCOUNT}-configurations"}
    rule = {
        "apiGroups": [group],
        "resources": [resource],
        "resourceNames": sorted(names),
        "verbs": [verb],
    }
    role = {
        "apiVersion": f"{rbac}/v1",
        "kind": "ClusterRole",
        "metadata": metadata,
        # Without names a rule would grant them all.
        "rules": [rule] if rule["resourceNames"] else [],
    }
    binding = {
        "apiVersion": f"{rbac}/v1",
        "kind": "ClusterRoleBinding",
        "metadata": metadata,
        "roleRef": {"apiGroup": rbac, "kind": "ClusterRole", "name": metadata["name"]},
        "subjects": [{"kind": "ServiceAccount", "name": ACCOUNT, "namespace": NAMESPACE}],
    }
    return _GRANTS + yaml.safe_dump_all([role, binding], sort_keys=False)


def changes(plans: Mapping[str, FleetPlan]) -> Iterator[tuple[str, MigGeometries, Layout]]:
    """Yield the name, the geometries of the card and the new layout of each node that changes."""
    for model, plan in plans.items():
        for node in plan.nodes:
            if node.changed and node.after is not None:
                yield node.name, geometries_of(CARDS[model]), node.after
