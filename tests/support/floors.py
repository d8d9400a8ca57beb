"""Clusters and workloads with on-demand floors, for every test of placement."""

from __future__ import annotations

from collections import Counter
from typing import Any

from plimsoll.domain.placement.spread_groups import label_key
from tests.support.workload_sets import WiredServices, deployment


def spread_over(spot_groups: int) -> dict[str, Any]:
    """Return the field of a pod's spec that spreads the pods of `web` over so many spot groups."""
    constraint = {
        "maxSkew": 1,
        "topologyKey": label_key(spot_groups),
        "whenUnsatisfiable": "DoNotSchedule",
        "labelSelector": {"matchLabels": {"app": "web"}},
        "matchLabelKeys": ["pod-template-hash"],
        "nodeTaintsPolicy": "Honor",
    }
    return {"topologySpreadConstraints": [constraint]}


def a_cluster(**how: Any) -> WiredServices:
    """Return a cluster with three on-demand nodes and spot nodes of two families."""
    wired = WiredServices(**how)
    for n in range(3):
        wired.join(f"od-{n}")
    for family in ("m5", "c5"):
        for n in range(2):
            labels = {"node.kubernetes.io/instance-type": f"{family}.large"}
            wired.join(f"{family}-{n}", capacity="spot", labels=labels)
    return wired


def web(floor: str = "3", replicas: int = 9) -> dict[str, Any]:
    manifest = deployment(replicas=replicas, **spread_over(2))
    manifest["metadata"]["annotations"] = {"plimsoll.dev/min-on-demand": floor}
    return manifest


def standing(wired: WiredServices) -> Counter[str]:
    """Return how many Ready pods stand on nodes of each family."""
    seen = wired.api.observe()
    return Counter((p.node or "").partition("-")[0] for p in seen.pods if p.serving)
