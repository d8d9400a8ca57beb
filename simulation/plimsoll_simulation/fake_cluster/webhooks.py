"""Admission webhooks: who is asked, what they change, and what becomes of a request that one denies or does not answer.

No request is sent. A webhook whose URL has the path `/deny/CODE/START` denies what is about an object whose name begins with
START, with the status CODE. A mutating one of the path `/sidecar/CPU` adds a native sidecar that requests CPU to a new pod,
one of the path `/cpu/CPU` lets its first container request CPU. Every other one cannot be reached, and its failurePolicy
decides. The differential suite sends real requests to a server that answers by the same path.

Sources: https://kubernetes.io/docs/reference/access-authn-authz/extensible-admission-controllers/,
k8s.io/apiserver/pkg/admission/plugin/webhook/errors/statuserror.go (ToStatusErr: no code below 400),
pkg/admission/plugin/webhook/validating/dispatcher.go (500 where a call fails and the policy is Fail)
Left out: mutating webhooks of anything but new pods, their reinvocation, match conditions, timeouts as time that
passes, writes of kubelets and schedulers.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final
from urllib.parse import urlsplit

from plimsoll.adapters.kubernetes.objects import parse_selector
from plimsoll.domain.kubernetes import matches
from plimsoll_simulation.fake_cluster.edits import Json, look, put
from plimsoll_simulation.fake_cluster.refusals import denied, not_called
from plimsoll_simulation.fake_cluster.store import Store

CONFIGURATIONS: Final = "validatingwebhookconfigurations"
MUTATING: Final = "mutatingwebhookconfigurations"


def ask(operation: str, resource: str, obj: Json, store: Store) -> None:
    """Ask all webhooks about a request.

    Args:
        operation: CREATE, UPDATE or DELETE.
        resource: a plural of the core group, with its subresource: `pods`, `pods/eviction`, `nodes`.
        obj: what is written; of an eviction the Eviction.
        store: of the cluster.

    Raises:
        RefusedError: the code of a webhook that denies it; 500, one that has to be asked does not answer.
    """
    for hook in _hooks(CONFIGURATIONS, store):
        if _asked(hook, operation, resource, obj, store):
            _answered(hook, obj)


def mutated(pod: Json, store: Store) -> Json:
    """Return a new pod as mutating webhooks change it, one after the other.

    Raises:
        RefusedError: as `ask`.
    """
    for hook in _hooks(MUTATING, store):
        if _asked(hook, "CREATE", "pods", pod, store):
            match _path(hook):
                case ["", "sidecar", cpu]:
                    pod = with_sidecar(pod, cpu)
                case ["", "cpu", cpu]:
                    pod = with_request(pod, cpu)
                case _:
                    _answered(hook, pod)
    return pod


def with_sidecar(pod: Json, cpu: str) -> Json:
    """Return a pod with a native sidecar that requests so much CPU."""
    sidecar: Json = {"name": "injected", "image": "example/injected", "restartPolicy": "Always"}
    sidecar["resources"] = {"requests": {"cpu": cpu}}
    inits = look(pod, "spec", "initContainers", default=())
    return put(pod, ("spec", "initContainers"), [*inits, sidecar])


def with_request(pod: Json, cpu: str) -> Json:
    """Return a pod whose first container requests so much CPU."""
    first, *others = pod["spec"]["containers"]
    first = put(first, ("resources", "requests", "cpu"), cpu)
    return put(pod, ("spec", "containers"), [first, *others])


def _hooks(resource: str, store: Store) -> Iterator[Json]:
    if store.count(resource):  # there are none in most clusters, and every write asks
        for configuration in store.all(resource):
            yield from configuration["webhooks"]


def _asked(hook: Json, operation: str, resource: str, obj: Json, store: Store) -> bool:
    meta = obj["metadata"]
    namespace = store.get("namespaces", "", meta.get("namespace", "")) or {}
    here = look(namespace, "metadata", "labels", default={})
    selected = all(
        selector is None or matches(parse_selector(selector), labels)
        for selector, labels in (
            (hook.get("namespaceSelector") if namespace else None, here),
            (hook.get("objectSelector"), meta.get("labels") or {}),
        )
    )
    return selected and any(
        {operation, "*"} & {*rule["operations"]}
        and {"", "*"} & {*rule["apiGroups"]}
        and any(_names(pattern, resource) for pattern in rule["resources"])
        for rule in hook["rules"]
    )


def _names(pattern: str, resource: str) -> bool:
    plural, _, part = pattern.partition("/")
    found, _, sub = resource.partition("/")
    return plural in {"*", found} and (part in {"*", sub})


def _answered(hook: Json, obj: Json) -> None:
    meta = obj["metadata"]
    match _path(hook):
        case ["", "deny", code, start]:
            if str(meta.get("name") or meta.get("generateName") or "").startswith(start):
                raise denied(hook["name"], int(code))
        case _ if hook.get("failurePolicy", "Fail") == "Fail":
            raise not_called(hook["name"])
        case _:
            pass


def _path(hook: Json) -> list[str]:
    url: str = look(hook, "clientConfig", "url", default="")
    return urlsplit(url).path.split("/")
