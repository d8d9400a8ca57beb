"""What a LimitRange and a RuntimeClass add to a new pod, and which pods a LimitRange refuses.

Sources: k8s.io/kubernetes/plugin/pkg/admission/limitranger/admission.go, pkg/apis/core/v1/defaults.go
(SetDefaults_LimitRangeItem), plugin/pkg/admission/runtimeclass/admission.go;
https://kubernetes.io/docs/concepts/policy/limit-range/, https://kubernetes.io/docs/concepts/containers/runtime-class/
Left out: ranges of pods as a whole and of claims, `maxLimitRequestRatio`.
"""

from __future__ import annotations

from collections.abc import Iterator
from decimal import Decimal
from typing import Any, Final

from plimsoll.domain.kubernetes import parse_quantity
from plimsoll_simulation.fake_cluster.edits import Json, look, put
from plimsoll_simulation.fake_cluster.refusals import forbidden, invalid
from plimsoll_simulation.fake_cluster.resources import BY_PLURAL
from plimsoll_simulation.fake_cluster.store import Store

_CONTAINERS: Final = ("initContainers", "containers")


def with_defaults(pod: Json, store: Store) -> Json:
    """Return a new pod with the requests and limits of its namespace, and the overhead of its runtime.

    Raises:
        RefusedError: 403, it requests more or less than a LimitRange allows, or its RuntimeClass is not there; 422, more
            than the limit that it gets.
    """
    pod = _of_runtime(pod, store)
    for limits in store.all("limitranges", pod["metadata"]["namespace"]):
        for item in limits["spec"]["limits"]:
            if item["type"] == "Container":
                pod = _within(pod, item)
    return pod


def _of_runtime(pod: Json, store: Store) -> Json:
    name = look(pod, "spec", "runtimeClassName")
    if name is None:
        return pod
    runtime = store.get("runtimeclasses", "", name)
    if runtime is None:
        why = f'pod rejected: RuntimeClass "{name}" not found'
        raise forbidden(BY_PLURAL["pods"], pod["metadata"]["name"], why)
    if overhead := look(runtime, "overhead", "podFixed"):
        pod = put(pod, ("spec", "overhead"), overhead)
    for field, kind in (("nodeSelector", dict), ("tolerations", list)):
        if more := look(runtime, "scheduling", field):
            own = look(pod, "spec", field, default=kind())
            pod = put(pod, ("spec", field), own | more if kind is dict else [*own, *more])
    return pod


def _within(pod: Json, item: Json) -> Json:
    limits = {**item.get("max", {}), **item.get("default", {})}
    requests = {**item.get("min", {}), **limits, **item.get("defaultRequest", {})}
    for field in _CONTAINERS:
        if containers := look(pod, "spec", field):
            changed = [_container(each, limits, requests) for each in containers]
            pod = put(pod, ("spec", field), changed)
    for number, container in enumerate(look(pod, "spec", "containers", default=())):
        limited = look(container, "resources", "limits", default={})
        asked = look(container, "resources", "requests", default={})
        if any(_amount(asked.get(name, "0")) > _amount(most) for name, most in limited.items()):
            where = f"spec.containers[{number}].resources.requests"
            why = "Invalid value: must be less than or equal to its limit"
            raise invalid(BY_PLURAL["pods"], pod["metadata"]["name"], where, why)
    wrong = [
        each
        for field in _CONTAINERS
        for container in look(pod, "spec", field, default=())
        for each in _against(container["resources"], item)
    ]
    if wrong:
        why = wrong[0] if len(wrong) == 1 else f"[{', '.join(wrong)}]"
        raise forbidden(BY_PLURAL["pods"], pod["metadata"]["name"], why)
    return pod


def _container(container: Json, limits: Json, requests: Json) -> Json:
    said = container.get("resources") or {}
    own = said.get("limits") or {}
    asked = {**own, **(said.get("requests") or {})}  # a limit without a request is one
    filled = {"limits": {**limits, **own}, "requests": {**requests, **asked}}
    return {**container, "resources": {**said, **{k: v for k, v in filled.items() if v}}}


def _amount(text: Any) -> Decimal:
    return parse_quantity(str(text))


def _against(said: Json, item: Json) -> Iterator[str]:
    """Yield what a container requests against a range."""
    for word, name, bound in (
        *(("minimum", n, b) for n, b in item.get("min", {}).items()),
        *(("maximum", n, b) for n, b in item.get("max", {}).items()),
    ):
        for kind in ("requests", "limits"):
            amount = look(said, kind, name)
            if amount is None:
                continue
            over = _amount(amount) - _amount(bound)
            if (over > 0) if word == "maximum" else (over < 0):
                yield f"{word} {name} usage per Container is {bound}, but {kind[:-1]} is {amount}"
                break
