"""Draws a PodDisruptionBudget over several workloads, as operators of search clusters and of node pools make it.

It is drawn after the rest of a storm, so a seed that draws nothing here is the storm that it was before.
"""

from __future__ import annotations

import random
from dataclasses import replace
from typing import Any, Final

from plimsoll_simulation.storms.chance import chance
from plimsoll_simulation.storms.model import Storm
from plimsoll_simulation.storms.workload import SCALED

SHARED: Final = 0.15
"""The share of storms with such a budget."""
_MOST: Final = 3
"""How many workloads it covers at most."""


def with_shared_budget(rnd: random.Random, storm: Storm) -> Storm:
    """Return a storm in which two or three workloads may have one budget instead of their own."""
    may = [w for w in storm.workloads if w.kind in SCALED and w.replicas and w.priority >= 0]
    if len(may) < 2 or not chance(rnd, SHARED):  # noqa: PLR2004 - one alone shares with nobody
        return storm
    covered = rnd.sample(may, rnd.randint(2, min(_MOST, len(may))))
    pods = sum(workload.replicas for workload in covered)
    field, value = rnd.choice(
        (
            *[("maxUnavailable", 1), ("minAvailable", max(1, pods - 1))] * 2,
            ("maxUnavailable", 2),
            ("maxUnavailable", "25%"),
            ("minAvailable", "60%"),
        )
    )
    apps = {"key": "app", "operator": "In", "values": [workload.name for workload in covered]}
    budget: dict[str, Any] = {
        "apiVersion": "policy/v1",
        "kind": "PodDisruptionBudget",
        "metadata": {"name": "shared"},
        "spec": {field: value, "selector": {"matchExpressions": [apps]}},
    }
    return replace(
        storm,
        workloads=tuple(replace(w, budget=None) if w in covered else w for w in storm.workloads),
        objects=(*storm.objects, budget),
    )
