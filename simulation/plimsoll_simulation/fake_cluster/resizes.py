"""In-place resizes: what is refused, what a kubelet grants, and what it says of that.

A resize is granted at once where the node has room for it. Else it is deferred until others have left room; the pod
holds what it had meanwhile. The API server refuses one for which the node is too small. Where that was larger before, its
kubelet says that the resize is infeasible.

Sources: k8s.io/kubernetes/plugin/pkg/admission/podresize,
k8s.io/kubernetes/pkg/kubelet/allocation/allocation_manager.go (canResizePod, RetryPendingResizes),
https://kubernetes.io/docs/tasks/configure-pod-container/resize-container-resources/
Left out: the time that a resize takes, resize policies that restart a container, memory in use, requests of whole pods.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime
from functools import reduce
from operator import add
from typing import Final

from plimsoll.adapters.kubernetes.objects import parse_node, parse_pod
from plimsoll.domain.kubernetes import Resources
from plimsoll_simulation.fake_cluster.conditions import condition, is_finished, with_condition
from plimsoll_simulation.fake_cluster.edits import Json, look, put

PENDING: Final = "PodResizePending"
_LISTS: Final = {"containers": "containerStatuses", "initContainers": "initContainerStatuses"}


def holding(container: Json) -> Json:
    """Return the fields of a container's status about what it is given: all that it asks for."""
    resources = container.get("resources") or {}
    requests = resources.get("requests")
    return {"resources": resources, **({"allocatedResources": requests} if requests else {})}


def holds(pod: Json) -> tuple[Mapping[str, Json], str]:
    """Return what the containers of a pod are given, and why a resize of it waits."""
    return _held(pod), (condition(pod, PENDING) or {}).get("reason", "")


def is_resized(pod: Json) -> bool:
    """Whether a pod that runs asks for something else than it holds."""
    held = _held(pod)
    return any(
        held.get(each["name"], resources) != resources
        for field in _LISTS
        for each in look(pod, "spec", field, default=())
        for resources in [each.get("resources") or {}]
    )


def too_large(pod: Json, node: Json) -> bool:
    """Whether a pod asks for more CPU or memory than its node has for all pods."""
    wanted, room = _requests(pod), parse_node(node).allocatable
    return wanted.cpu > room.cpu or wanted.memory > room.memory


def resized(pod: Json, node: Json, there: Iterable[Json], now: datetime) -> Json:
    """Return a pod that asks for something else than it holds, with the answer of its kubelet.

    Args:
        pod: which is resized.
        node: on which it runs.
        there: all pods on that.
        now: the time of a condition.
    """
    wanted = _requests(pod)
    room = parse_node(node).allocatable
    uid = pod["metadata"]["uid"]
    others = [each for each in there if each["metadata"]["uid"] != uid and not is_finished(each)]
    taken = reduce(add, map(_allocated, others), wanted)
    if wanted.within(_allocated(pod)) or taken.within(room):
        if condition(pod, PENDING) is not None:
            pod = with_condition(pod, PENDING, "False", now=now)
        return _given(pod)
    reason = "Infeasible" if too_large(pod, node) else "Deferred"
    return with_condition(pod, PENDING, "True", now=now, reason=reason)


def _held(pod: Json) -> Mapping[str, Json]:
    return {
        each["name"]: each["resources"]
        for field in _LISTS.values()
        for each in look(pod, "status", field, default=())
        if "resources" in each
    }


def _given(pod: Json) -> Json:
    """Return a pod that holds all that it asks for."""
    for field, of in _LISTS.items():
        asked = {each["name"]: holding(each) for each in look(pod, "spec", field, default=())}
        if statuses := look(pod, "status", of):
            given = [{**each, **asked[each["name"]]} for each in statuses]
            pod = put(pod, ("status", of), given)
    return pod


def _allocated(pod: Json) -> Resources:
    """Return what a pod holds, whatever it asks for."""
    held = _held(pod)
    for field in _LISTS:
        if containers := look(pod, "spec", field):
            had = [
                {**each, "resources": held.get(each["name"], each.get("resources") or {})}
                for each in containers
            ]
            pod = put(pod, ("spec", field), had)
    return _requests(pod)


def _requests(pod: Json) -> Resources:
    return parse_pod({**pod, "status": {}}).scheduling.requests
