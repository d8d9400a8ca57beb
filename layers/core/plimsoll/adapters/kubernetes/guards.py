"""The PodDisruptionBudget that guards a workload, as it is sent."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from plimsoll.domain.kubernetes import GUARD, Selector, Workload

type Json = dict[str, Any]

_VERSIONS: Final[Mapping[str, str]] = {
    "Deployment": "apps/v1",
    "Rollout": "argoproj.io/v1alpha1",
}
"""Of what can be guarded."""


def budget_object(workload: Workload, name: str) -> Json:
    """Return the budget of a workload: whoever deletes the workload deletes it too."""
    ref = workload.ref
    owner = {
        "apiVersion": _VERSIONS[ref.kind],
        "kind": ref.kind,
        "name": ref.name,
        "uid": workload.uid,
    }
    return {
        "apiVersion": "policy/v1",
        "kind": "PodDisruptionBudget",
        "metadata": {
            "name": name,
            "namespace": ref.namespace,
            "labels": {GUARD: "true"},
            "ownerReferences": [owner],
        },
        "spec": {"maxUnavailable": 0, "selector": _as_sent(workload.selector)},
    }


def _as_sent(selector: Selector) -> Json:
    expressions = [
        {"key": r.key, "operator": r.operator, **({"values": list(r.values)} if r.values else {})}
        for r in selector.requirements
    ]
    return {
        **({"matchLabels": dict(selector.labels)} if selector.labels else {}),
        **({"matchExpressions": expressions} if expressions else {}),
    }
