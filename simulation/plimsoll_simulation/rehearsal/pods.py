"""What is kept of a pod: what decides where it may run and when it is Ready, and nothing else of it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import ceil
from statistics import median
from typing import Any, Final

from plimsoll.domain.disruptions import StopTime, least_seconds
from plimsoll.domain.kubernetes import Pod
from plimsoll_simulation.rehearsal.live import Json

_FIELDS: Final = (
    "hostNetwork",
    "nodeSelector",
    "preemptionPolicy",
    "priorityClassName",
    "resources",
    "restartPolicy",
    "schedulingGroup",
    "terminationGracePeriodSeconds",
    "tolerations",
    "overhead",
)
_NAMING: Final = ("affinity", "nodeSelector")
"""Fields that may name a node."""
_OF_CONTAINERS: Final = ("name", "resources", "restartPolicy")
_IMAGE: Final = "rehearsal"
"""Nothing runs: what does not decide anything is not told either."""


def pod_spec(template: Json, live: Json, names: Mapping[str, str]) -> dict[str, Any]:
    """Return the spec of a pod for a scenario.

    Args:
        template: what its workload says of it; it names the claims that are not made for each pod.
        live: a pod as admission left it, which adds containers, requests and constraints.
        names: live node -> node of the scenario.
    """
    found: dict[str, Any] = {k: live[k] for k in _FIELDS if live.get(k)}
    found["terminationGracePeriodSeconds"] = live.get("terminationGracePeriodSeconds", 30)
    found["containers"] = [_container(each) for each in live["containers"]]
    if live.get("initContainers"):
        found["initContainers"] = [_container(each) for each in live["initContainers"]]
    affinity = _affinity(template, live)
    if affinity:
        found["affinity"] = affinity
    if live.get("topologySpreadConstraints"):
        found["topologySpreadConstraints"] = [
            _without_values(each) for each in live["topologySpreadConstraints"]
        ]
    volumes = [
        {"name": v["name"], "persistentVolumeClaim": v["persistentVolumeClaim"]}
        for v in template.get("volumes") or ()
        if v.get("persistentVolumeClaim")
    ]
    if volumes:
        found["volumes"] = volumes
    return found | {k: renamed(found[k], names) for k in _NAMING if k in found}


def startup_of(pods: Sequence[Pod]) -> float | None:
    """Return how many seconds pods took from their node to Ready; None where none tells."""
    seconds = [pod.start_seconds for pod in pods if pod.start_seconds is not None]
    return median(seconds) if seconds else None


def played_stop(pod: Pod, known: StopTime) -> int:
    """Return how many seconds a pod is played to take to stop.

    Plimsoll may reserve more: an assumption is the whole grace period where that is safer, and a pod with a claim is given twice the p95.
    """
    return least_seconds(pod) if known.observed is None else ceil(known.observed.p95_seconds)


def renamed(value: Any, names: Mapping[str, str]) -> Any:
    """Return a value in which the name of a live node is that of its node in the scenario."""
    if isinstance(value, Mapping):
        return {key: renamed(each, names) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [renamed(each, names) for each in value]
    return names.get(value, value) if isinstance(value, str) else value


def _container(live: Json) -> dict[str, Any]:
    found = {k: live[k] for k in _OF_CONTAINERS if live.get(k)} | {"image": _IMAGE}
    ports = [port for port in live.get("ports") or () if port.get("hostPort")]
    return found | ({"ports": ports} if ports else {})


def _affinity(template: Json, live: Json) -> dict[str, Any]:
    """Return the affinity to nodes of the pod, and the affinity to pods of its template.

    The API server writes the values of `matchLabelKeys` into the terms of a pod, and the hash of
    another template selects nothing in the scenario.
    """
    found = dict(template.get("affinity") or {})
    nodes = (live.get("affinity") or {}).get("nodeAffinity")
    return found | ({"nodeAffinity": nodes} if nodes else {})


def _without_values(constraint: Json) -> dict[str, Any]:
    """Return a spread constraint without what the API server made of its `matchLabelKeys`."""
    keys, selector = constraint.get("matchLabelKeys") or (), constraint.get("labelSelector")
    if not keys or not selector:
        return dict(constraint)
    expressions = [e for e in selector.get("matchExpressions") or () if e.get("key") not in keys]
    labels = {k: v for k, v in (selector.get("matchLabels") or {}).items() if k not in keys}
    kept = ({"matchLabels": labels} if labels else {}) | (
        {"matchExpressions": expressions} if expressions else {}
    )
    return {**constraint, "labelSelector": kept}
