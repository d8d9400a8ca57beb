"""What is kept of a pod: what decides where it may run and when it is Ready, and nothing else of it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from statistics import median
from typing import Any, Final

from plimsoll_testbed.rehearsal.live import Json, time_of

_FIELDS: Final = (
    "hostNetwork",
    "nodeSelector",
    "preemptionPolicy",
    "priorityClassName",
    "resources",
    "restartPolicy",
    "terminationGracePeriodSeconds",
    "tolerations",
    "overhead",
)
_NAMING: Final = ("affinity", "nodeSelector")
"""Fields that may name a node."""
_OF_CONTAINERS: Final = ("name", "resources", "restartPolicy")
_IMAGE: Final = "rehearsal"
"""Nothing runs: what does not decide anything is not told either."""
_LONGEST: Final = 600.0
"""Seconds. A pod that was Ready later than this after it was bound was not Ready for another reason."""


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


def startup_of(pods: Sequence[Json]) -> float | None:
    """Return how many seconds pods took from their node to Ready; None where none tells."""
    seconds = [took for pod in pods if (took := _startup(pod)) is not None]
    return median(seconds) if seconds else None


def renamed(value: Any, names: Mapping[str, str]) -> Any:
    """Return a value in which the name of a live node is that of its node in the scenario."""
    if isinstance(value, Mapping):
        return {key: renamed(each, names) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [renamed(each, names) for each in value]
    return names.get(value, value) if isinstance(value, str) else value


def _startup(pod: Json) -> float | None:
    status = pod.get("status", {})
    if any(each.get("restartCount") for each in status.get("containerStatuses") or ()):
        return None  # it became Ready once more, later than the first time
    bound, ready = _since(status, "PodScheduled"), _since(status, "Ready")
    if bound is None or ready is None:
        return None
    took = (ready - bound).total_seconds()
    return took if 0 <= took <= _LONGEST else None


def _since(status: Json, condition: str) -> datetime | None:
    for each in status.get("conditions") or ():
        if each.get("type") == condition and each.get("status") == "True":
            return time_of(each.get("lastTransitionTime"))
    return None


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
