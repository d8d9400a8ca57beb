"""What selects and limits pods."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from msgspec import Raw

from plimsoll.adapters.kubernetes import schema
from plimsoll.adapters.kubernetes.decoding import Json, decoded, naming, raw
from plimsoll.adapters.kubernetes.objects.metadata import ref
from plimsoll.adapters.kubernetes.scheduling import read_selector
from plimsoll.domain.kubernetes import (
    MATCHES_NOTHING,
    Budget,
    LabelSelection,
    Namespace,
    Quota,
    Requirement,
    Resources,
    Selector,
    names,
)

_OF_PODS: Final = {
    "pods": "pods",
    "count/pods": "pods",
    "cpu": "cpu",
    "requests.cpu": "cpu",
    "memory": "memory",
    "requests.memory": "memory",
    "ephemeral-storage": "ephemeral-storage",
}
"""What a ResourceQuota may limit of pods -> the name of a pod's own request. `requests.` stands before all others."""
_UNLIMITED: Final = 2**62
"""In the place of what a quota does not limit: more than any sum of requests, in whatever unit."""


@naming("Namespace")
def parse_namespace(obj: Raw) -> Namespace:
    """Read what a namespace says of its workloads."""
    meta = decoded(obj, schema.Named).metadata
    return Namespace(
        name=meta.name,
        labels=meta.labels,
        floor=meta.annotations.get(names.MIN_ON_DEMAND),
        promise=meta.annotations.get(names.KEEP_READY),
        injects=meta.labels.get(names.INJECT_FLOORS) == "true" and meta.name != names.KUBE_SYSTEM,
        guard=None if meta.name == names.KUBE_SYSTEM else meta.labels.get(names.GUARD),
        obeys_budgets=any(
            marks.get(names.OVERRULE_BUDGETS) == names.NEVER_OVERRULED
            for marks in (meta.labels, meta.annotations)
        ),
    )


@naming("ConfigMap")
def parse_floors(obj: Raw) -> tuple[str, Mapping[str, str]]:
    """Read what the admission policy is told of a namespace."""
    read = decoded(obj, schema.ConfigMap)
    return read.metadata.namespace, read.data


@naming("Service")
def parse_service(obj: Raw) -> LabelSelection:
    """Read a Service. One without a selector selects no pod."""
    read = decoded(obj, schema.Service)
    selector = Selector(labels=read.spec.selector) if read.spec.selector else MATCHES_NOTHING
    return LabelSelection(
        ref=ref("Service", read.metadata),
        selector=selector,
        node_ports=read.spec.type in {"NodePort", "LoadBalancer"},
        local=read.spec.external_traffic_policy == "Local",
    )


@naming("NetworkPolicy")
def parse_network_policy(obj: Raw) -> LabelSelection:
    """Read a NetworkPolicy, as far as it selects the pods that it is for."""
    read = decoded(obj, schema.NetworkPolicy)
    selector = read_selector(read.spec.pod_selector, "spec.podSelector")
    return LabelSelection(ref=ref("NetworkPolicy", read.metadata), selector=selector)


@naming("ResourceQuota")
def parse_quota(obj: Raw) -> Quota:
    """Read what pods may still request under a ResourceQuota.

    https://kubernetes.io/docs/concepts/policy/resource-quotas/
    """
    read = decoded(obj, schema.Quota)
    hard, used = _limited(read.status.hard), _limited(read.status.used)
    left = Resources.parse(hard) - Resources.parse({name: used.get(name, "0") for name in hard})
    return Quota(
        ref=ref("ResourceQuota", read.metadata),
        left=Resources(
            cpu=left.cpu if "cpu" in hard else _UNLIMITED,
            memory=left.memory if "memory" in hard else _UNLIMITED,
            pods=left.pods if "pods" in hard else _UNLIMITED,
            extended=left.extended,
        ),
        scopes=(
            *(Requirement(key=scope, operator="Exists") for scope in read.spec.scopes),
            *(
                Requirement(key=line.scope_name, operator=line.operator, values=line.values)
                for line in read.spec.scope_selector.match_expressions
            ),
        ),
    )


def _limited(amounts: Mapping[str, str]) -> dict[str, str]:
    """Return what a quota says of pods, under the names that a pod's own requests have."""
    names_of = {name: _OF_PODS.get(name, name.removeprefix("requests.")) for name in amounts}
    return {
        names_of[name]: amount
        for name, amount in amounts.items()
        if name in _OF_PODS or (name.startswith("requests.") and name != "requests.storage")
    }


@naming("PodDisruptionBudget")
def parse_budget(obj: Raw) -> Budget:
    """Read a PodDisruptionBudget. One without a selector guards no pod, one with `{}` every pod."""
    read = decoded(obj, schema.Budget)
    return Budget(
        ref=ref("PodDisruptionBudget", read.metadata),
        uid=read.metadata.uid,
        guards=read.metadata.labels.get(names.GUARD) == "true",
        selector=read_selector(read.spec.selector, "spec.selector"),
        min_available=read.spec.min_available,
        max_unavailable=read.spec.max_unavailable,
        disruptions_allowed=read.status.disruptions_allowed,
        missing=max(0, read.status.desired_healthy - read.status.current_healthy),
    )


def parse_selector(obj: Json | None) -> Selector:
    """Read a label selector; an absent one selects nothing, an empty one everything."""
    return read_selector(None if obj is None else decoded(raw(obj), schema.LabelSelector))
