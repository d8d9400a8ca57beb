"""Every call that the agent makes to read its cluster: `manifests/rbac.yaml` grants these.

What carries out an instruction makes the calls of `plimsoll.adapters.kubernetes.calls`, under the
rights of `infra/agent/act`.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from plimsoll.adapters.kubernetes import calls
from plimsoll.adapters.kubernetes.calls import Call
from plimsoll.domain.kubernetes import KUBE_SYSTEM, NAMESPACE
from plimsoll_service.wire.gpu_plan import CONFIG_MAP

_METRICS: Final = {"verb": "list", "group": "metrics.k8s.io", "version": "v1beta1"}

LIST_DAEMON_SETS: Final = Call(verb="list", group="apps", resource="daemonsets")
LIST_JOBS: Final = Call(verb="list", group="batch", resource="jobs")
LIST_CRON_JOBS: Final = Call(verb="list", group="batch", resource="cronjobs")
LIST_INGRESSES: Final = Call(verb="list", group="networking.k8s.io", resource="ingresses")
LIST_SLICES: Final = Call(verb="list", group="discovery.k8s.io", resource="endpointslices")
LIST_LIMIT_RANGES: Final = Call(verb="list", resource="limitranges")
LIST_VERTICAL_SCALERS: Final = Call(
    verb="list", group="autoscaling.k8s.io", version="v1", resource="verticalpodautoscalers"
)
LIST_NODE_USAGE: Final = Call(**_METRICS, resource="nodes")
LIST_POD_USAGE: Final = Call(**_METRICS, resource="pods")

TOLD: Final = (
    calls.LIST_NODES,
    calls.LIST_NAMESPACES,
    calls.LIST_PODS,
    calls.LIST_DEPLOYMENTS,
    calls.LIST_REPLICA_SETS,
    calls.LIST_STATEFUL_SETS,
    calls.LIST_ROLLOUTS,
    LIST_DAEMON_SETS,
    LIST_JOBS,
    LIST_CRON_JOBS,
    calls.LIST_BUDGETS,
    calls.LIST_VOLUMES,
    calls.LIST_STORAGE_CLASSES,
    calls.LIST_SCALERS,
    calls.LIST_SERVICES,
    LIST_INGRESSES,
    LIST_SLICES,
    LIST_LIMIT_RANGES,
    LIST_VERTICAL_SCALERS,
)
"""Of which a snapshot tells: listed once, and then watched."""
WATCHES: Final = tuple(replace(call, verb="watch") for call in TOLD)
PLANNED_WITH: Final = (
    calls.LIST_CLAIMS,
    calls.LIST_ATTACHMENTS,
    calls.LIST_CSI_NODES,
    calls.LIST_QUOTAS,
    calls.LIST_NETWORK_POLICIES,
)
"""Listed besides when an instruction is planned, as `plimsoll drain --dry-run` does."""

KEY: Final = "plimsoll-agent-key"
POLICY: Final = "plimsoll-agent-policy"
JOURNAL: Final = "plimsoll-agent-journal"


def _own(verb: str, resource: str, name: str) -> Call:
    return Call(verb=verb, resource=resource, only_in=NAMESPACE, only=name)


GET_KEY: Final = _own("get", "secrets", KEY)
PATCH_KEY: Final = _own("patch", "secrets", KEY)
GET_POLICY: Final = _own("get", "configmaps", POLICY)
GET_JOURNAL: Final = _own("get", "configmaps", JOURNAL)
PATCH_JOURNAL: Final = _own("patch", "configmaps", JOURNAL)
GET_CLUSTER: Final = Call(verb="get", resource="namespaces", only=KUBE_SYSTEM)
"""Its uid names the cluster."""

CALLS: Final = (
    *TOLD,
    *WATCHES,
    *PLANNED_WITH,
    calls.GET_NODE,
    LIST_NODE_USAGE,
    LIST_POD_USAGE,
    GET_KEY,
    PATCH_KEY,
    GET_POLICY,
    GET_JOURNAL,
    PATCH_JOURNAL,
    GET_CLUSTER,
)

GET_GPU_PLAN: Final = _own("get", "configmaps", CONFIG_MAP)
GET_CONFIG: Final = Call(verb="get", resource="configmaps")
"""The one that a plan of GPU layouts names."""
MAY_USE: Final = Call(
    verb="create", group="authorization.k8s.io", resource="selfsubjectaccessreviews"
)
"""Whether the owner grants a name of a layout. Everybody may ask that of himself, by the ClusterRole system:basic-user."""
GPU_CALLS: Final = (
    calls.LIST_NODES,
    calls.PATCH_NODE,
    calls.LIST_PODS,
    GET_GPU_PLAN,
    GET_CONFIG,
)
"""Of `plimsoll-gpu`, under its own identity. All else it does under that of the drain."""
