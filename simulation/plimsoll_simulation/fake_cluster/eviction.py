"""The eviction subresource: the API-initiated way to take a pod off its node.

Answers: 201 the pod was told to go; 404 it does not exist; 409 a precondition does not hold; 429
with the cause DisruptionBudget, a budget says not now; 500 two budgets match the pod. Budgets are
not asked for a pod that is Pending, finished or already going. A pod that is not Ready may go when
its budget says AlwaysAllow, or when enough others are healthy.

Sources: k8s.io/kubernetes/pkg/registry/core/pod/storage/eviction.go (1.36),
https://kubernetes.io/docs/concepts/scheduling-eviction/api-eviction/,
https://kubernetes.io/docs/tasks/run-application/configure-pdb/#unhealthy-pod-eviction-policy
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime

from plimsoll.adapters.kubernetes.objects import parse_selector
from plimsoll.domain.kubernetes import matches
from plimsoll_simulation.fake_cluster.conditions import is_deleting, is_ready, with_condition
from plimsoll_simulation.fake_cluster.deletion import DeleteOptions, delete
from plimsoll_simulation.fake_cluster.edits import Json, look, put
from plimsoll_simulation.fake_cluster.refusals import (
    RefusedError,
    bad_request,
    internal,
    too_many_requests,
)
from plimsoll_simulation.fake_cluster.stamps import stamp
from plimsoll_simulation.fake_cluster.store import Store

_BLOCKED = "Cannot evict pod as it would violate the pod's disruption budget."
_TWO = (
    "This pod has more than one PodDisruptionBudget, which the eviction subresource does not "
    "support."
)


def evict(store: Store, namespace: str, name: str, body: Json, *, now: datetime) -> None:
    """Tell a pod to go, if its budget allows it.

    Raises:
        RefusedError: 400, 404, 409, 429 or 500, as above.
    """
    if look(body, "metadata", "name", default=name) != name:
        raise bad_request("name in URL does not match name in Eviction object")
    pod = store.must_get("pods", namespace, name)
    options = DeleteOptions.parse(body.get("deleteOptions"))
    budget = None if _unguarded(pod) else _budget(store, pod)
    if budget is not None and not _harmless(pod, budget):
        spent = _spend(budget, name, now)
        if not options.dry_run:
            store.replace("poddisruptionbudgets", spent, now=now)
    # Preconditions are checked before the condition is written, which makes a new version.
    dry = replace(options, dry_run=True)
    delete(store, "pods", pod, dry, now=now)
    if options.dry_run:
        return
    marked = with_condition(
        pod,
        "DisruptionTarget",
        "True",
        now=now,
        reason="EvictionByEvictionAPI",
        message="Eviction API: evicting",
    )
    pod = store.replace("pods", marked, now=now)
    delete(store, "pods", pod, replace(options, resource_version=None), now=now)


def _unguarded(pod: Json) -> bool:
    """Whether a budget has no say. Source: canIgnorePDB."""
    return is_deleting(pod) or look(pod, "status", "phase") in {"Pending", "Succeeded", "Failed"}


def _budget(store: Store, pod: Json) -> Json | None:
    labels = pod["metadata"].get("labels") or {}
    found = [
        budget
        for budget in store.all("poddisruptionbudgets", pod["metadata"]["namespace"])
        if _selects(budget["spec"].get("selector"), labels)
    ]
    if len(found) > 1:
        raise internal(_TWO)
    return found[0] if found else None


def _selects(selector: Json | None, labels: Mapping[str, str]) -> bool:
    """Whether a selector matches; most budgets are ruled out by one label, before any reading."""
    for key, value in ((selector or {}).get("matchLabels") or {}).items():
        if labels.get(key) != value:
            return False
    return matches(parse_selector(selector), labels)


def _harmless(pod: Json, budget: Json) -> bool:
    """Whether a pod that is not Ready may go without the budget being charged."""
    if is_ready(pod):
        return False
    if look(budget, "spec", "unhealthyPodEvictionPolicy") == "AlwaysAllow":
        return True
    desired = look(budget, "status", "desiredHealthy", default=0)
    return bool(look(budget, "status", "currentHealthy", default=0) >= desired > 0)


def _spend(budget: Json, pod: str, now: datetime) -> Json:
    """Return the budget with one disruption less. Source: checkAndDecrement."""
    name, status = budget["metadata"]["name"], budget.get("status") or {}
    if status.get("observedGeneration", 0) < budget["metadata"].get("generation", 0):
        said = f"The disruption budget {name} is still being processed by the server."
        raise _blocked(said, retry_after=10)
    allowed = status.get("disruptionsAllowed", 0)
    if allowed == 0:
        needs, has = status.get("desiredHealthy", 0), status.get("currentHealthy", 0)
        said = (
            f"The disruption budget {name} needs {needs} healthy pods and has {has} currently"
            if has <= needs
            else f"The disruption budget {name} does not allow evicting pods currently"
        )
        raise _blocked(said, retry_after=None)
    disrupted = {**(status.get("disruptedPods") or {}), pod: stamp(now)}
    spent = {**status, "disruptionsAllowed": allowed - 1, "disruptedPods": disrupted}
    return put(budget, ("status",), spent)


def _blocked(said: str, *, retry_after: int | None) -> RefusedError:
    cause = {"reason": "DisruptionBudget", "message": said}
    return too_many_requests(_BLOCKED, retry_after=retry_after, causes=[cause])
