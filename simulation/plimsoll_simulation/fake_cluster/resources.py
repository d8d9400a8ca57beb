"""The kinds of objects that are stored. Adding one is one line in the table.

Source: https://kubernetes.io/docs/reference/kubernetes-api/
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from plimsoll.domain.errors import BadInput
from plimsoll_batch.domain.frameworks import FRAMEWORKS
from plimsoll_simulation.fake_cluster.edits import Json


@dataclass(frozen=True, slots=True, kw_only=True)
class Resource:
    """One line of the table."""

    plural: str
    kind: str
    group: str = ""
    version: str = "v1"
    namespaced: bool = True
    generation: bool = False
    """Whether metadata.generation counts the changes of spec."""
    status: bool = False
    """Whether status is a subresource, so that plain writes leave it is."""
    scale: bool = False

    @property
    def api_version(self) -> str:
        """As in an object's apiVersion."""
        return f"{self.group}/{self.version}" if self.group else self.version

    @property
    def qualified(self) -> str:
        """As in messages: `deployments.apps`."""
        return f"{self.plural}.{self.group}" if self.group else self.plural


def _apps(plural: str, kind: str, *, scale: bool = True) -> Resource:
    return Resource(
        plural=plural, kind=kind, group="apps", generation=True, status=True, scale=scale
    )


TABLE: tuple[Resource, ...] = (
    Resource(plural="nodes", kind="Node", namespaced=False, status=True),
    Resource(plural="pods", kind="Pod", generation=True, status=True),
    Resource(plural="namespaces", kind="Namespace", namespaced=False, status=True),
    Resource(plural="services", kind="Service", status=True),
    Resource(plural="configmaps", kind="ConfigMap"),
    Resource(plural="secrets", kind="Secret"),
    Resource(plural="serviceaccounts", kind="ServiceAccount"),
    Resource(plural="events", kind="Event"),
    Resource(plural="persistentvolumeclaims", kind="PersistentVolumeClaim", status=True),
    Resource(plural="persistentvolumes", kind="PersistentVolume", namespaced=False, status=True),
    _apps("deployments", "Deployment"),
    _apps("replicasets", "ReplicaSet"),
    _apps("statefulsets", "StatefulSet"),
    _apps("daemonsets", "DaemonSet", scale=False),
    Resource(
        plural="poddisruptionbudgets",
        kind="PodDisruptionBudget",
        group="policy",
        generation=True,
        status=True,
    ),
    Resource(
        plural="horizontalpodautoscalers",
        kind="HorizontalPodAutoscaler",
        group="autoscaling",
        version="v2",
        status=True,
    ),
    Resource(plural="resourcequotas", kind="ResourceQuota", status=True),
    Resource(plural="limitranges", kind="LimitRange"),
    Resource(plural="runtimeclasses", kind="RuntimeClass", group="node.k8s.io", namespaced=False),
    Resource(
        plural="networkpolicies", kind="NetworkPolicy", group="networking.k8s.io", generation=True
    ),
    Resource(plural="jobs", kind="Job", group="batch", generation=True, status=True),
    Resource(plural="cronjobs", kind="CronJob", group="batch", generation=True, status=True),
    Resource(plural="leases", kind="Lease", group="coordination.k8s.io"),
    Resource(
        plural="podgroups",
        kind="PodGroup",
        group="scheduling.k8s.io",
        version="v1beta1",
        status=True,
    ),
    Resource(
        plural="priorityclasses",
        kind="PriorityClass",
        group="scheduling.k8s.io",
        namespaced=False,
    ),
    Resource(
        plural="volumeattachments",
        kind="VolumeAttachment",
        group="storage.k8s.io",
        namespaced=False,
        status=True,
    ),
    *(
        Resource(plural=plural, kind=kind, group="admissionregistration.k8s.io", namespaced=False)
        for plural, kind in (
            ("mutatingadmissionpolicies", "MutatingAdmissionPolicy"),
            ("mutatingadmissionpolicybindings", "MutatingAdmissionPolicyBinding"),
            ("mutatingwebhookconfigurations", "MutatingWebhookConfiguration"),
            ("validatingwebhookconfigurations", "ValidatingWebhookConfiguration"),
        )
    ),
    *(
        Resource(plural=plural, kind=kind, group="karpenter.sh", namespaced=False, status=True)
        for plural, kind in (("nodepools", "NodePool"), ("nodeclaims", "NodeClaim"))
    ),
    *(
        Resource(plural=plural, kind=kind, group="storage.k8s.io", namespaced=False)
        for plural, kind in (("storageclasses", "StorageClass"), ("csinodes", "CSINode"))
    ),
    *(
        Resource(
            plural=row.resource,
            kind=row.kind,
            group=row.group,
            version=row.version,
            generation=True,
            status=True,
        )
        for row in FRAMEWORKS
    ),
)

BY_PLURAL: Mapping[str, Resource] = {r.plural: r for r in TABLE}
BY_KIND: Mapping[str, Resource] = {r.kind: r for r in TABLE}
BY_PATH: Mapping[tuple[str, str, str], Resource] = {
    (r.group, r.version, r.plural): r for r in TABLE
}
"""By (group, version, plural), as a request names it."""


def path_of(manifest: Json) -> tuple[str, str]:
    """Return the path of a manifest's collection and its name; no namespace means `default`.

    Raises:
        BadInput: its kind is not one that a fake cluster keeps, or it has no name.
    """
    kind, meta = manifest.get("kind", ""), manifest.get("metadata") or {}
    line = BY_KIND.get(kind)
    if line is None:
        raise BadInput(f"kind {kind!r} is not known here; known are {', '.join(sorted(BY_KIND))}")
    if not meta.get("name"):
        raise BadInput(f"a {kind} without metadata.name")
    root = f"/apis/{line.api_version}" if line.group else f"/api/{line.version}"
    middle = f"/namespaces/{meta.get('namespace') or 'default'}" if line.namespaced else ""
    return f"{root}{middle}/{line.plural}", str(meta["name"])
