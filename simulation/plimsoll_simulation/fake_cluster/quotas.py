"""ResourceQuotas: what the pods of a namespace may request together.

A pod is refused with 403 where a quota that binds it by its scopes has too little left, or where it does not request what the
quota limits. So is a resize, for what it asks for beyond the present requests. Pods that have finished, and those that
outlast their grace period, are not charged.

Which pods a quota binds and what a pod requests is read as Plimsoll reads it; the differential suite holds both to a real
API server.

Sources: k8s.io/kubernetes/pkg/quota/v1/evaluator/core/pods.go (PodUsageFunc, QuotaV1Pod, Constraints),
k8s.io/apiserver/pkg/admission/plugin/resourcequota/controller.go (CheckRequest),
https://kubernetes.io/docs/concepts/policy/resource-quotas/
Left out: quotas of anything but pods, limits (`limits.cpu`), the lag of the charged amounts.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from datetime import datetime, timedelta
from typing import Final

from plimsoll.adapters.kubernetes.objects import parse_pod, parse_quota
from plimsoll.domain.kubernetes import Resources
from plimsoll_simulation.fake_cluster.conditions import is_finished
from plimsoll_simulation.fake_cluster.edits import Json, look, put
from plimsoll_simulation.fake_cluster.refusals import forbidden
from plimsoll_simulation.fake_cluster.resources import BY_PLURAL
from plimsoll_simulation.fake_cluster.stamps import moment
from plimsoll_simulation.fake_cluster.store import Store

type Amounts = Mapping[str, int]
"""By the name that a quota has for it; CPU in thousandths."""

_OBJECTS: Final = "count/pods"
_REQUESTED: Final = ("cpu", "memory", "ephemeral-storage")


def check(pod: Json, store: Store, now: datetime, before: Json | None = None) -> None:
    """Refuse a new pod, or a resized one, that a quota of its namespace does not allow.

    Raises:
        RefusedError: 403, with the words of the API server.
    """
    meta = pod["metadata"]
    for quota in store.all("resourcequotas", meta["namespace"]):
        if not parse_quota(quota).binds(parse_pod(pod)):
            continue
        hard, name = _hard(quota), quota["metadata"]["name"]
        if without := sorted(_unsaid(pod, hard)):
            why = f"failed quota: {name}: must specify {'; '.join(without)}"
            raise forbidden(BY_PLURAL["pods"], meta["name"], why)
        had = Counter[str]() if before is None else _usage(before, now)
        wanted, used = _usage(pod, now) - had, charged(quota, store, now)
        over = [key for key in hard if wanted[key] and used[key] + wanted[key] > hard[key]]
        if over:
            said = ", ".join(
                f"{word}: {','.join(f'{k}={_text(k, amounts[k])}' for k in sorted(over))}"
                for word, amounts in (("requested", wanted), ("used", used), ("limited", hard))
            )
            why = f"exceeded quota: {name}, {said}"
            raise forbidden(BY_PLURAL["pods"], meta["name"], why)


def charged(quota: Json, store: Store, now: datetime) -> Counter[str]:
    """Return what the pods that a quota binds use of it."""
    read, used = parse_quota(quota), Counter[str]()
    for pod in store.all("pods", quota["metadata"]["namespace"]):
        if read.binds(parse_pod(pod)):
            used += _usage(pod, now)
    return used


def reported(quota: Json, store: Store, now: datetime) -> Json:
    """Return a quota whose status says what is used of it."""
    used, limited = charged(quota, store, now), quota["spec"]["hard"]
    amounts = {key: _text(key, used[key]) for key in limited}
    return put(quota, ("status",), {"hard": limited, "used": amounts})


def ends_to_count(pod: Json) -> datetime | None:
    """Return when a pod that was told to go is no longer charged, though it is still there."""
    meta = pod["metadata"]
    if "deletionTimestamp" not in meta:
        return None
    grace = timedelta(seconds=meta["deletionGracePeriodSeconds"])
    return moment(meta["deletionTimestamp"]) + grace


def _usage(pod: Json, now: datetime) -> Counter[str]:
    ends = ends_to_count(pod)
    if is_finished(pod) or (ends is not None and now > ends):
        return Counter({_OBJECTS: 1})
    asked = _by_name(parse_pod(pod).scheduling.requests)
    return Counter({_OBJECTS: 1, "pods": 1, **asked})


def _by_name(asked: Resources) -> dict[str, int]:
    plain = {"cpu": asked.cpu, "memory": asked.memory, **dict(asked.extended)}
    found = {f"requests.{name}": amount for name, amount in plain.items()}
    return found | {name: plain[name] for name in _REQUESTED if name in plain}


def _hard(quota: Json) -> dict[str, int]:
    """Return what a quota limits of pods."""
    limited = quota["spec"]["hard"]
    return {
        key: _by_name(Resources.parse({name: amount}))[name]
        if (name := key.removeprefix("requests.")) in _REQUESTED
        else Resources.parse({"pods": amount}).pods
        for key, amount in limited.items()
        if not key.startswith(("limits.", "count/")) or key == _OBJECTS
    }


def _unsaid(pod: Json, hard: Amounts) -> Iterator[str]:
    """Yield what containers have to request and do not."""
    containers = [
        *look(pod, "spec", "initContainers", default=()),
        *look(pod, "spec", "containers", default=()),
    ]
    for key in hard:
        name = key.removeprefix("requests.")
        if name not in {"cpu", "memory"} or look(pod, "spec", "resources", "requests", name):
            continue
        silent = [
            c["name"]
            for c in containers
            if not any(
                look(c, "resources", kind, name) is not None for kind in ("requests", "limits")
            )
        ]
        if silent:
            yield f"{key} for: {','.join(sorted(silent))}"


def _text(key: str, amount: int) -> str:
    cpu = key.removeprefix("requests.") == "cpu"
    if not cpu:
        return str(amount)
    return str(amount // 1000) if amount % 1000 == 0 else f"{amount}m"
