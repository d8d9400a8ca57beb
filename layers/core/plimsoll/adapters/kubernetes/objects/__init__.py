"""Kubernetes objects read into the domain's types.

What an object may leave out may be left out here too, with the API server's default in its place.
What is there and has the wrong shape, or is larger than anybody means, raises BadInput, which names
the object and the field, and nothing else is raised: tenants write these objects, and the reader of
a cluster leaves a bad one out. Numbers are held to what can be counted with.
"""

from __future__ import annotations

from plimsoll.adapters.kubernetes.objects.nodes import parse_node
from plimsoll.adapters.kubernetes.objects.pods import parse_pod, parse_pod_group
from plimsoll.adapters.kubernetes.objects.policies import (
    parse_budget,
    parse_floors,
    parse_namespace,
    parse_network_policy,
    parse_quota,
    parse_selector,
    parse_service,
)
from plimsoll.adapters.kubernetes.objects.storage import (
    parse_attachment,
    parse_claim,
    parse_storage_class,
    parse_volume,
    parse_volume_limits,
)
from plimsoll.adapters.kubernetes.objects.workloads import (
    parse_any_replica_set,
    parse_deployment,
    parse_rollout,
    parse_scaler,
    parse_stateful_set,
)

__all__ = [
    "parse_any_replica_set",
    "parse_attachment",
    "parse_budget",
    "parse_claim",
    "parse_deployment",
    "parse_floors",
    "parse_namespace",
    "parse_network_policy",
    "parse_node",
    "parse_pod",
    "parse_pod_group",
    "parse_quota",
    "parse_rollout",
    "parse_scaler",
    "parse_selector",
    "parse_service",
    "parse_stateful_set",
    "parse_storage_class",
    "parse_volume",
    "parse_volume_limits",
]
