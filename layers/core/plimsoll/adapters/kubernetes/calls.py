"""Every call that is made to a cluster, but for those of a kind of node group.

Requests are built from such calls only. So they are also the list of rights:
`infra/cluster/rbac.yaml` grants these and no more, and a test compares the two.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Final, override
from urllib.parse import quote

from plimsoll.domain.kubernetes import FLOORS, LEASE, NAMESPACE

_METHODS: Final[Mapping[str, str]] = {
    "get": "GET",
    "list": "GET",
    "watch": "GET",
    "create": "POST",
    "update": "PUT",
    "patch": "PATCH",
    "delete": "DELETE",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Call:
    """A verb on a resource, as RBAC names them."""

    verb: str
    group: str = ""
    version: str = "v1"
    resource: str
    """With its subresource, as in `pods/eviction`."""
    only_in: str | None = None
    """The one namespace that it is made in; None: any, or none."""
    only: str | None = None
    """The one object that it is made of; None: any."""

    @property
    def method(self) -> str:
        """Return the HTTP method."""
        return _METHODS[self.verb]

    def path(self, *, namespace: str | None = None, name: str | None = None) -> str:
        """Return the path of the request."""
        plural, _, subresource = self.resource.partition("/")
        parts = [
            *(("apis", self.group) if self.group else ("api",)),
            self.version,
            *(("namespaces", namespace) if namespace else ()),
            plural,
            *((name,) if name else ()),
            *((subresource,) if subresource else ()),
        ]
        return "/" + "/".join(quote(part, safe=":") for part in parts)

    @override
    def __str__(self) -> str:
        return f"{self.verb} {f'{self.group}/' if self.group else ''}{self.resource}"


_APPS: Final = "apps"

GET_NODE: Final = Call(verb="get", resource="nodes")
PATCH_NODE: Final = Call(verb="patch", resource="nodes")
PATCH_POD: Final = Call(verb="patch", resource="pods")
DELETE_POD: Final = Call(verb="delete", resource="pods")
EVICT: Final = Call(verb="create", resource="pods/eviction")
CREATE_EVENT: Final = Call(verb="create", resource="events")

LIST_NODES: Final = Call(verb="list", resource="nodes")
LIST_NAMESPACES: Final = Call(verb="list", resource="namespaces")
LIST_PODS: Final = Call(verb="list", resource="pods")
LIST_DEPLOYMENTS: Final = Call(verb="list", group=_APPS, resource="deployments")
LIST_REPLICA_SETS: Final = Call(verb="list", group=_APPS, resource="replicasets")
LIST_STATEFUL_SETS: Final = Call(verb="list", group=_APPS, resource="statefulsets")
LIST_ROLLOUTS: Final = Call(
    verb="list", group="argoproj.io", version="v1alpha1", resource="rollouts"
)
"""Asked for only where a ReplicaSet belongs to one."""
LIST_POD_GROUPS: Final = Call(
    verb="list", group="scheduling.k8s.io", version="v1beta1", resource="podgroups"
)
"""Asked for only where a pod names one: most clusters do not serve the kind, which comes with Kubernetes 1.37."""
LIST_BUDGETS: Final = Call(verb="list", group="policy", resource="poddisruptionbudgets")
LIST_CLAIMS: Final = Call(verb="list", resource="persistentvolumeclaims")
LIST_VOLUMES: Final = Call(verb="list", resource="persistentvolumes")
LIST_STORAGE_CLASSES: Final = Call(verb="list", group="storage.k8s.io", resource="storageclasses")
"""Asked for only where a claim is not bound."""
LIST_CSI_NODES: Final = Call(verb="list", group="storage.k8s.io", resource="csinodes")
LIST_SCALERS: Final = Call(
    verb="list", group="autoscaling", version="v2", resource="horizontalpodautoscalers"
)
LIST_ATTACHMENTS: Final = Call(verb="list", group="storage.k8s.io", resource="volumeattachments")

LIST_SERVICES: Final = Call(verb="list", resource="services")
LIST_QUOTAS: Final = Call(verb="list", resource="resourcequotas")
LIST_NETWORK_POLICIES: Final = Call(
    verb="list", group="networking.k8s.io", resource="networkpolicies"
)

LIST_FLOORS: Final = Call(verb="list", resource="configmaps", only=FLOORS)
PATCH_FLOORS: Final = Call(verb="patch", resource="configmaps", only=FLOORS)
TRY_POD: Final = Call(verb="create", resource="pods", only_in=NAMESPACE)
"""As a dry run only, which a policy holds us to: RBAC cannot."""
REMOVE_INJECTION: Final = Call(
    verb="delete",
    group="admissionregistration.k8s.io",
    resource="mutatingadmissionpolicybindings",
    only=FLOORS,
)
CREATE_BUDGET: Final = Call(verb="create", group="policy", resource="poddisruptionbudgets")
DELETE_BUDGET: Final = Call(verb="delete", group="policy", resource="poddisruptionbudgets")
"""Of budgets with our label only, which a policy holds us to: RBAC knows no labels."""
OVERLAYS: Final[Mapping[str, tuple[Call, ...]]] = {
    "deletions": (DELETE_POD,),
    "guard": (CREATE_BUDGET, DELETE_BUDGET),
    "injection": (LIST_FLOORS, PATCH_FLOORS, TRY_POD, REMOVE_INJECTION),
}
"""Folder in `infra/cluster` -> the calls whose rights an owner may withhold."""


def _lease(verb: str, name: str | None = LEASE) -> Call:
    return Call(
        verb=verb, group="coordination.k8s.io", resource="leases", only_in=NAMESPACE, only=name
    )


GET_LEASE: Final = _lease("get")
CREATE_LEASE: Final = _lease("create", None)  # RBAC knows no names of what is not there yet
UPDATE_LEASE: Final = _lease("update")

FOLLOWED: Final[tuple[Call, ...]] = (
    LIST_NODES,
    LIST_PODS,
    LIST_DEPLOYMENTS,
    LIST_REPLICA_SETS,
    LIST_STATEFUL_SETS,
    LIST_ROLLOUTS,
    LIST_POD_GROUPS,
    LIST_BUDGETS,
    LIST_CLAIMS,
    LIST_VOLUMES,
    LIST_SCALERS,
    LIST_ATTACHMENTS,
    LIST_CSI_NODES,
    LIST_SERVICES,
    LIST_QUOTAS,
    LIST_NETWORK_POLICIES,
)
"""What a reconcile lists once and then watches. Where it may not watch, it lists at each observation."""
WATCHES: Final = tuple(replace(call, verb="watch") for call in FOLLOWED)

GET_FLOW_SCHEMA: Final = Call(
    verb="get", group="flowcontrol.apiserver.k8s.io", resource="flowschemas", only="plimsoll"
)
"""Only the doctor asks for it."""

CALLS: Final[tuple[Call, ...]] = (
    GET_NODE,
    PATCH_NODE,
    PATCH_POD,
    EVICT,
    CREATE_EVENT,
    LIST_NAMESPACES,
    LIST_STORAGE_CLASSES,
    *FOLLOWED,
    *WATCHES,
    GET_LEASE,
    CREATE_LEASE,
    UPDATE_LEASE,
    GET_FLOW_SCHEMA,
    *(call for calls in OVERLAYS.values() for call in calls),
)
