"""What the admission policy of `plimsoll install-policy` adds to a new pod, where it is installed.

No CEL is evaluated: the policy is known by its name. The differential suite holds this to the real
policy on a real API server.
"""

from __future__ import annotations

from plimsoll.domain.kubernetes import (
    CAPACITY_LABELS,
    FLOORS,
    INJECT_FLOORS,
    KUBE_SYSTEM,
    SPREAD_PREFIX,
)
from plimsoll.domain.placement import INJECTION_ENTRIES, ON_DEMAND
from plimsoll_simulation.fake_cluster.edits import Json, look, put
from plimsoll_simulation.fake_cluster.store import Store

_PREFERRED = (
    "spec",
    "affinity",
    "nodeAffinity",
    "preferredDuringSchedulingIgnoredDuringExecution",
)
_REVISIONS = {"ReplicaSet": "pod-template-hash", "StatefulSet": "controller-revision-hash"}


def injected(pod: Json, store: Store) -> Json:
    """Return a new pod as the policy lets it be created."""
    meta = pod["metadata"]
    namespace = meta["namespace"]
    owner = next((o for o in meta.get("ownerReferences") or () if o.get("controller")), None)
    label = _REVISIONS.get(owner["kind"], "") if owner else ""
    revision = (meta.get("labels") or {}).get(label)
    if owner is None or revision is None or not _in_force(store, namespace):
        return pod
    workload = f"statefulset.{owner['name']}"
    if owner["kind"] == "ReplicaSet":
        name, dash, end = owner["name"].rpartition(f"-{revision}")
        workload = f"deployment.{name}" if dash and not end else ""
    told = store.get("configmaps", namespace, FLOORS) or {}
    entry = (told.get("data") or {}).get(workload, "")
    spread = look(pod, "spec", "topologySpreadConstraints", default=[])
    selector = look(pod, "spec", "nodeSelector", default={})
    if (
        entry in INJECTION_ENTRIES
        and entry != ON_DEMAND
        and not any(c["topologyKey"].startswith(SPREAD_PREFIX) for c in spread)
    ):
        constraint = {
            "maxSkew": 1,
            "topologyKey": f"{SPREAD_PREFIX}{entry}",
            "whenUnsatisfiable": "DoNotSchedule",
            "labelSelector": {"matchLabels": {label: revision}},
            "nodeTaintsPolicy": "Honor",
        }
        if entry == "0":
            wanted = {"key": f"{SPREAD_PREFIX}0", "operator": "NotIn", "values": [ON_DEMAND]}
            preference = {"weight": 100, "preference": {"matchExpressions": [wanted]}}
            pod = put(pod, _PREFERRED, [*look(pod, *_PREFERRED, default=[]), preference])
        return put(pod, ("spec", "topologySpreadConstraints"), [*spread, constraint])
    if entry == ON_DEMAND and CAPACITY_LABELS[0] not in selector:
        return put(pod, ("spec", "nodeSelector"), {**selector, CAPACITY_LABELS[0]: entry})
    return pod


def _in_force(store: Store, namespace: str) -> bool:
    labels = look(store.get("namespaces", "", namespace) or {}, "metadata", "labels", default={})
    return (
        store.get("mutatingadmissionpolicybindings", "", FLOORS) is not None
        and store.get("mutatingadmissionpolicies", "", FLOORS) is not None
        and labels.get(INJECT_FLOORS) == "true"
        and namespace != KUBE_SYSTEM
    )
