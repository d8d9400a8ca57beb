"""Changes that surroundings make to a storm: to one of its workloads, to its events; and the webhooks that come with them."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from plimsoll_simulation.storms.model import Applied, Storm
from plimsoll_simulation.storms.workload import CUSTOM, Workload

type Json = dict[str, Any]


def one_changed(rnd: random.Random, storm: Storm, change: Callable[[Workload], Workload]) -> Storm:
    """Return a storm in which one workload is changed, if there is one that may be."""
    may = [w for w in storm.workloads if w.kind not in {"DaemonSet", CUSTOM}]
    if not may:
        return storm
    chosen = rnd.choice(may)
    changed = change(chosen)
    return replace(storm, workloads=tuple(changed if w is chosen else w for w in storm.workloads))


def with_events(storm: Storm, *events: Applied) -> Storm:
    """Return a storm with more events, each in its place."""
    return replace(
        storm, events=tuple(sorted((*storm.events, *events), key=lambda event: event.at))
    )


def webhook(answer: str, operation: str, resources: tuple[str, ...]) -> Json:
    """Return a webhook of the namespace default; the path of its URL is what it answers."""
    rule = {"operations": [operation], "apiGroups": [""], "apiVersions": ["v1"]}
    return {
        "name": "storm.example.com",
        "rules": [{**rule, "resources": [*resources]}],
        "clientConfig": {"url": f"https://webhooks.invalid/{answer}"},
        "namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": "default"}},
        "admissionReviewVersions": ["v1"],
        "sideEffects": "None",
    }


def configuration(*hooks: Json, kind: str = "ValidatingWebhookConfiguration") -> Json:
    """Return the configuration of webhooks."""
    return {
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": kind,
        "metadata": {"name": "storm"},
        "webhooks": [*hooks],
    }
