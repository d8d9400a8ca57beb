"""HorizontalPodAutoscalers that follow the usage of their pods."""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Final, override

from plimsoll.adapters.kubernetes.objects import parse_selector
from plimsoll.domain.kubernetes import matches
from plimsoll_simulation.fake_cluster.conditions import is_deleting, is_finished, is_ready
from plimsoll_simulation.fake_cluster.edits import look
from plimsoll_simulation.fake_cluster.pod_annotations import USAGE
from plimsoll_simulation.fake_cluster.resources import BY_KIND, path_of
from plimsoll_simulation.rigs.simulated.other_controllers.other_controller import (
    Json,
    OtherController,
)

_LEAST: Final = 0.9
_MOST: Final = 1.1
"""--horizontal-pod-autoscaler-tolerance, below and above."""
_STABLE: Final = timedelta(minutes=5)
"""--horizontal-pod-autoscaler-downscale-stabilization."""
_USED: Final = 10
"""Per cent of what it requests, for a pod that does not say it."""


@dataclass(slots=True)
class Hpa(OtherController):
    """Scales by the share of its request that each Ready pod uses: `drill.plimsoll.dev/usage`.

    Source: k8s.io/kubernetes/pkg/controller/podautoscaler/replica_calculator.go. Every pod that the
    target's selector matches counts, whoever owns it; one that is not Ready holds a scale-up back.
    """

    _wanted: dict[str, deque[tuple[datetime, int]]] = field(default_factory=dict)

    @override
    def look(self) -> None:
        for scaler in list(self.rig_cluster.all("horizontalpodautoscalers")):
            ref = scaler["spec"]["scaleTargetRef"]
            namespace = scaler["metadata"]["namespace"]
            target = self.rig_cluster.get(BY_KIND[ref["kind"]].plural, namespace, ref["name"])
            goal = _goal(scaler)
            if target is None or goal is None or not target["spec"]["replicas"]:
                continue
            wanted = self._stable(scaler, self._ask(scaler, target, goal))
            if wanted != target["spec"]["replicas"]:
                scale = f"{'/'.join(path_of(target))}/scale"
                self.send("PATCH", scale, {"spec": {"replicas": wanted}})

    def _ask(self, scaler: Json, target: Json, goal: int) -> int:
        """Return the count that the usage just now asks for, within the bounds."""
        selector = parse_selector(target["spec"]["selector"])
        pods = [
            pod
            for pod in self.rig_cluster.all("pods")
            if pod["metadata"]["namespace"] == target["metadata"]["namespace"]
            and matches(selector, look(pod, "metadata", "labels", default={}))
            and not is_deleting(pod)
            and not is_finished(pod)
        ]
        wanted = _count(pods, goal, target["spec"]["replicas"])
        least, most = scaler["spec"].get("minReplicas", 1), scaler["spec"]["maxReplicas"]
        return int(max(least, min(wanted, most)))

    def _stable(self, scaler: Json, wanted: int) -> int:
        """Return the highest count that was wanted in the last minutes."""
        now = self.clock.now()
        recent = self._wanted.setdefault(scaler["metadata"]["uid"], deque())
        recent.append((now, wanted))
        while recent[0][0] <= now - _STABLE:
            recent.popleft()
        return max(count for _, count in recent)


def _count(pods: Sequence[Json], goal: int, replicas: int) -> int:
    """Return the count for these pods. The controller knows a utilization in whole per cent, rounded down."""
    ready = [pod for pod in pods if is_ready(pod)]
    if not ready:
        return replicas
    used = sum(map(_usage, ready))
    ratio, counted = used // len(ready) / goal, len(ready)
    if ratio > 1 and counted < len(pods):
        counted = len(pods)  # those that start count as idle, and such a ratio lowers nothing
        ratio = max(used // counted / goal, 1.0)
        return replicas if ratio <= _MOST else max(replicas, math.ceil(ratio * counted))
    return replicas if _LEAST <= ratio <= _MOST else math.ceil(ratio * counted)


def _goal(scaler: Json) -> int | None:
    """Return the per cent of their CPU requests that its pods are to use."""
    for metric in scaler["spec"].get("metrics", ()):
        goal: int | None = look(metric, "resource", "target", "averageUtilization")
        if goal is not None:
            return goal
    return None


def _usage(pod: Json) -> int:
    said = look(pod, "metadata", "annotations", default={}).get(USAGE)
    return _USED if said is None else int(said.removesuffix("%"))
