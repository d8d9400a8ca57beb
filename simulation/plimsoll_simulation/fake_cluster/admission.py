"""What the API server fills in and refuses before an object is stored, as far as a drain sees it.

Left out: nearly all validation. What is checked is what would otherwise make a controller of the
model run wild, and what our own writes must never do (change a pod's spec, or what is immutable).

Sources: k8s.io/kubernetes/pkg/apis/*/v1/defaults.go and pkg/apis/*/validation;
https://kubernetes.io/docs/concepts/scheduling-eviction/pod-priority-preemption/#priorityclass
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from datetime import datetime
from typing import Any

from plimsoll.adapters.kubernetes.objects import parse_selector
from plimsoll.domain.kubernetes import matches
from plimsoll_simulation.fake_cluster.conditions import with_condition
from plimsoll_simulation.fake_cluster.edits import Json, look, put
from plimsoll_simulation.fake_cluster.injection import injected
from plimsoll_simulation.fake_cluster.pod_defaults import with_defaults
from plimsoll_simulation.fake_cluster.quotas import check
from plimsoll_simulation.fake_cluster.refusals import forbidden, invalid, not_found
from plimsoll_simulation.fake_cluster.resources import BY_PLURAL, Resource
from plimsoll_simulation.fake_cluster.store import Store
from plimsoll_simulation.fake_cluster.webhooks import ask, mutated

_NAME = re.compile(r"[a-z0-9]([-a-z0-9.]*[a-z0-9])?")
_LONGEST = 253

_DEFAULTS: Mapping[str, Json] = {
    "pods": {
        "restartPolicy": "Always",
        "terminationGracePeriodSeconds": 30,
        "schedulerName": "default-scheduler",
        "dnsPolicy": "ClusterFirst",
    },
    "deployments": {
        "replicas": 1,
        "strategy": {"type": "RollingUpdate"},
        "revisionHistoryLimit": 10,
        "progressDeadlineSeconds": 600,
    },
    "replicasets": {"replicas": 1},
    "statefulsets": {
        "replicas": 1,
        "podManagementPolicy": "OrderedReady",
        "updateStrategy": {"type": "RollingUpdate", "rollingUpdate": {"partition": 0}},
        "revisionHistoryLimit": 10,
        "persistentVolumeClaimRetentionPolicy": {"whenDeleted": "Retain", "whenScaled": "Retain"},
    },
    "daemonsets": {
        "updateStrategy": {
            "type": "RollingUpdate",
            "rollingUpdate": {"maxSurge": 0, "maxUnavailable": 1},
        },
        "revisionHistoryLimit": 10,
    },
    "persistentvolumeclaims": {"volumeMode": "Filesystem", "accessModes": ["ReadWriteOnce"]},
    "jobs": {"parallelism": 1, "backoffLimit": 6},
    "horizontalpodautoscalers": {"minReplicas": 1},
}
_PHASES = {
    "pods": "Pending",
    "persistentvolumeclaims": "Pending",
    "persistentvolumes": "Available",
    "namespaces": "Active",
}
_TEMPLATED = frozenset({"deployments", "replicasets", "statefulsets", "daemonsets"})
_POD_MUTABLE = frozenset({"tolerations", "activeDeadlineSeconds", "schedulingGates"})
_STATEFUL_MUTABLE = frozenset(
    {
        "replicas",
        "ordinals",
        "template",
        "updateStrategy",
        "persistentVolumeClaimRetentionPolicy",
        "minReadySeconds",
        "revisionHistoryLimit",
    }
)


def admitted(resource: Resource, obj: Json, store: Store, now: datetime) -> Json:
    """Return a new object as it will be stored.

    Raises:
        RefusedError: 422 what is wrong with it; 404 its namespace does not exist; 403 a quota does not allow it; or
            what a webhook answers.
    """
    name = obj["metadata"].get("name", "")
    if not _NAME.fullmatch(name) or len(name) > _LONGEST:
        raise invalid(resource, name, "metadata.name", f"Invalid value: {name!r}")
    namespace = obj["metadata"].get("namespace", "")
    if resource.namespaced and store.get("namespaces", "", namespace) is None:
        raise not_found(BY_PLURAL["namespaces"], namespace)
    if defaults := _DEFAULTS.get(resource.plural):
        spec = obj.get("spec") or {}
        if resource.plural == "jobs" and "parallelism" not in spec:
            spec = {"completions": 1, **spec}  # with parallelism alone, one success is enough
        obj = {**obj, "spec": {**defaults, **spec}}
    if special := _SPECIAL.get(resource.plural):
        obj = special(obj, store)
    if resource.status and resource.plural != "nodes":
        phase = _PHASES.get(resource.plural)
        if resource.plural == "persistentvolumeclaims" and obj["spec"].get("volumeName"):
            phase = "Bound"  # the controller that binds it to this volume is not modelled
        obj = {**obj, "status": {"phase": phase} if phase else {}}
    if resource.plural == "pods" and look(obj, "spec", "schedulingGates"):
        why = "SchedulingGated"
        obj = with_condition(obj, "PodScheduled", "False", now=now, reason=why)
    _checked(resource, obj)
    ask("CREATE", resource.plural, obj, store)
    if resource.plural == "pods":
        check(obj, store, now)
    return obj


def readmitted(resource: Resource, obj: Json, before: Json, store: Store) -> None:
    """Check a changed object against what it was.

    Raises:
        RefusedError: 422, it changes what cannot be changed; or what a webhook answers.
    """
    _unchanged(resource, obj, before)
    ask("UPDATE", resource.plural, obj, store)


def _unchanged(resource: Resource, obj: Json, before: Json) -> None:
    new, old = obj.get("spec"), before.get("spec")
    if new == old or new is None or old is None:
        return
    name = obj["metadata"]["name"]
    if resource.plural == "pods":
        gates = {gate["name"] for gate in old.get("schedulingGates") or ()}
        if {gate["name"] for gate in new.get("schedulingGates") or ()} - gates:
            why = "Forbidden: only deletion is allowed, but found new scheduling gates"
            raise invalid(resource, name, "spec.schedulingGates", why)
        new, old = _fixed(new), _fixed(old)
        if gates:  # node selectors may gain labels as long as a pod is gated
            there = old.get("nodeSelector") or {}
            kept = {k: v for k, v in (new.pop("nodeSelector", None) or {}).items() if k in there}
            new, old = {**new, "nodeSelector": kept}, {**old, "nodeSelector": there}
    if resource.plural == "pods" and new != old:
        why = "Forbidden: pod updates may not change fields other than images, tolerations and deadlines"
        raise invalid(resource, name, "spec", why)
    if resource.plural == "statefulsets":
        changed = {k for k in {*new, *old} if new.get(k) != old.get(k)} - _STATEFUL_MUTABLE
        if changed:
            why = f"Forbidden: updates to statefulset spec for fields other than {sorted(_STATEFUL_MUTABLE)} are forbidden"
            raise invalid(resource, name, "spec", why)
    elif resource.plural in _TEMPLATED and new.get("selector") != old.get("selector"):
        raise invalid(resource, name, "spec.selector", "field is immutable")
    _checked(resource, obj)


def _checked(resource: Resource, obj: Json) -> None:
    spec, name = obj.get("spec") or {}, obj["metadata"]["name"]
    replicas = spec.get("replicas", 0)
    if resource.scale and (not isinstance(replicas, int) or replicas < 0):
        why = f"Invalid value: {replicas}: must be greater than or equal to 0"
        raise invalid(resource, name, "spec.replicas", why)
    if resource.plural in _TEMPLATED:
        labels = look(spec, "template", "metadata", "labels", default={})
        if not spec.get("selector") or not matches(parse_selector(spec["selector"]), labels):
            why = "`selector` does not match template `labels`"
            raise invalid(resource, name, "spec.template.metadata.labels", why)
    if resource.plural == "poddisruptionbudgets" and {"minAvailable", "maxUnavailable"} <= set(
        spec
    ):
        raise invalid(resource, name, "spec", "minAvailable and maxUnavailable cannot be both set")


def _fixed(spec: Json) -> Json:
    """Return what of a pod's spec can never change."""
    fixed = {k: v for k, v in spec.items() if k not in _POD_MUTABLE}
    for field in ("containers", "initContainers"):
        if field in fixed:
            fixed[field] = [{k: v for k, v in c.items() if k != "image"} for c in fixed[field]]
    return fixed


def _deployment(obj: Json, store: Store) -> Json:
    del store
    if look(obj, "spec", "strategy", "type") != "RollingUpdate":
        return obj
    given = look(obj, "spec", "strategy", "rollingUpdate", default={})
    rolling = {"maxUnavailable": "25%", "maxSurge": "25%", **given}
    return put(obj, ("spec", "strategy", "rollingUpdate"), rolling)


def _pod(obj: Json, store: Store) -> Json:
    """Resolve the priority class, and let the pod stay a while on a node that is away.

    Source: the admission plugins Priority and DefaultTolerationSeconds.
    """
    obj = with_defaults(mutated(injected(obj, store), store), store)
    spec: dict[str, Any] = obj["spec"]
    spec = {**spec, "tolerations": _tolerations(spec.get("tolerations") or ())}
    line: Json | None
    if name := spec.get("priorityClassName"):
        builtin = {"system-cluster-critical": 2_000_000_000, "system-node-critical": 2_000_001_000}
        line = store.get("priorityclasses", "", name)
        if line is None and name not in builtin:
            why = f"no PriorityClass with name {name} was found"
            raise forbidden(BY_PLURAL["pods"], obj["metadata"]["name"], why)
        value = builtin[name] if line is None else line["value"]
    else:
        line = next((c for c in store.all("priorityclasses") if c.get("globalDefault")), None)
        value = 0 if line is None else line["value"]
    resolved = {
        "priority": value,
        "preemptionPolicy": look(line or {}, "preemptionPolicy", default="PreemptLowerPriority"),
        **({} if line is None else {"priorityClassName": line["metadata"]["name"]}),
    }
    return {**obj, "spec": {**resolved, **spec}}


def _tolerations(given: Iterable[Json]) -> list[Json]:
    """Add what a pod does not say about nodes that are not ready or unreachable."""
    tolerations = list(given)
    for key in ("node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable"):
        if not any(
            t.get("key", "") in {"", key} and t.get("effect", "") in {"", "NoExecute"}
            for t in tolerations
        ):
            stay = {"key": key, "operator": "Exists", "effect": "NoExecute"}
            tolerations.append({**stay, "tolerationSeconds": 300})
    return tolerations


def _priority_class(obj: Json, store: Store) -> Json:
    """Let only one class be the global default."""
    other = next((c for c in store.all("priorityclasses") if c.get("globalDefault")), None)
    name = obj["metadata"]["name"]
    if obj.get("globalDefault") and other is not None and other["metadata"]["name"] != name:
        why = f"PriorityClass {other['metadata']['name']} is already marked as default. Only one default can exist"
        raise forbidden(BY_PLURAL["priorityclasses"], name, why)
    return obj


def _namespace(obj: Json, store: Store) -> Json:
    """Label a namespace with its name. Source: pkg/registry/core/namespace."""
    del store
    meta = obj["metadata"]
    labels = {**(meta.get("labels") or {}), "kubernetes.io/metadata.name": meta["name"]}
    return put(obj, ("metadata", "labels"), labels)


_SPECIAL: Mapping[str, Callable[[Json, Store], Json]] = {
    "deployments": _deployment,
    "namespaces": _namespace,
    "pods": _pod,
    "priorityclasses": _priority_class,
}
