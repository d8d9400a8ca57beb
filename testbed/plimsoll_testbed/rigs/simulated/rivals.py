"""Other programs that act in a cluster, whoever responds: what they own must not be fought over.

They keep to what the owner has declared: by manifests, and by `apply` and `scale` of the timeline.
Each looks at the cluster once in its period, and passes over a look while the API server is away.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any, Final, override

from plimsoll.adapters.kubernetes.objects import parse_selector
from plimsoll.domain.pods import OwnerKind
from plimsoll.domain.selectors import matches
from plimsoll_testbed.model.hollow.conditions import (
    controller_of,
    is_deleting,
    is_finished,
    is_ready,
)
from plimsoll_testbed.model.hollow.controllers.kubelet import USAGE
from plimsoll_testbed.model.hollow.edits import look
from plimsoll_testbed.model.hollow.resources import BY_KIND, path_of
from plimsoll_testbed.rigs.simulated.rig_cluster import HollowRigCluster
from plimsoll_testbed.rigs.simulated.time import VirtualClock

type Json = dict[str, Any]

_TOLERANCE: Final = 0.1
_STABLE: Final = timedelta(minutes=5)
"""--horizontal-pod-autoscaler-tolerance and -downscale-stabilization."""
_USED: Final = 10
"""Per cent of what it requests, for a pod that does not say it."""


@dataclass(slots=True)
class Rival(ABC):
    """One program in one cluster."""

    rig_cluster: HollowRigCluster
    clock: VirtualClock
    name: str

    def act(self) -> None:
        """Look once, and do what is to be done."""
        with suppress(ConnectionRefusedError):
            for method, path, body in self.requests():
                now, cluster = self.clock.now(), self.rig_cluster.cluster
                kind = "application/json" if method == "POST" else "application/merge-patch+json"
                cluster.handle(method, path, None, body, kind, now=now, user=self.name)
                self.clock.touch(cluster)

    @abstractmethod
    def requests(self) -> Iterator[tuple[str, str, Json]]:
        """Yield what it asks of the API server: method, path and body."""

    def live(self, obj: Json) -> Json | None:
        """Return an object as it stands in the cluster."""
        metadata = obj["metadata"]
        plural = BY_KIND[obj["kind"]].plural
        return self.rig_cluster.get(plural, metadata.get("namespace", "default"), metadata["name"])


class GitOps(Rival):
    """Sets workloads, budgets and autoscalers back to what is declared; an autoscaler's count is left to it."""

    @override
    def requests(self) -> Iterator[tuple[str, str, Json]]:
        declared = self.rig_cluster.declared
        held = {
            (
                obj["spec"]["scaleTargetRef"]["kind"],
                namespace,
                obj["spec"]["scaleTargetRef"]["name"],
            )
            for (kind, namespace, _), obj in declared.items()
            if kind == "HorizontalPodAutoscaler"
        }
        for key, obj in declared.items():
            if "spec" in obj and key[0] in _APPLIED and not _operated(obj):
                yield from self.set_back(obj, held=key in held)

    def set_back(self, obj: Json, *, held: bool) -> Iterator[tuple[str, str, Json]]:
        """Yield the patch that takes back what somebody changed in a spec."""
        live = self.live(obj)
        spec = {k: v for k, v in obj["spec"].items() if not (held and k == "replicas")}
        if live is not None and not _contains(live["spec"], spec):
            yield "PATCH", "/".join(path_of(obj)), {"spec": spec}


class Operator(GitOps):
    """Holds what a custom resource owns: makes its pods anew, and sets counts and templates back."""

    @override
    def requests(self) -> Iterator[tuple[str, str, Json]]:
        for obj in [o for o in self.rig_cluster.declared.values() if _operated(o)]:
            if obj["kind"] != "Pod":
                yield from self.set_back(obj, held=False)
            elif self.live(obj) is None:
                yield "POST", path_of(obj)[0], obj


@dataclass(slots=True)
class Hpa(Rival):
    """Scales by the share of its request that each Ready pod uses: `drill.plimsoll.dev/usage`.

    Source: k8s.io/kubernetes/pkg/controller/podautoscaler/replica_calculator.go. Every pod that the
    target's selector matches counts, whoever owns it; one that is not Ready holds a scale-up back.
    """

    _wanted: dict[str, deque[tuple[datetime, int]]] = field(default_factory=dict)

    @override
    def requests(self) -> Iterator[tuple[str, str, Json]]:
        for scaler in list(self.rig_cluster.all("horizontalpodautoscalers")):
            ref = scaler["spec"]["scaleTargetRef"]
            namespace = scaler["metadata"]["namespace"]
            target = self.rig_cluster.get(BY_KIND[ref["kind"]].plural, namespace, ref["name"])
            goal = _goal(scaler)
            if target is None or goal is None or not target["spec"]["replicas"]:
                continue
            wanted = self._stable(scaler, self._ask(scaler, target, goal))
            if wanted != target["spec"]["replicas"]:
                yield "PATCH", f"{'/'.join(path_of(target))}/scale", {"spec": {"replicas": wanted}}

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
        ready = [pod for pod in pods if is_ready(pod)]
        wanted: int = target["spec"]["replicas"]
        used = sum(_usage(pod) for pod in ready)
        counted = len(ready)
        if ready and used > goal * counted:
            counted = len(pods)  # those that start count as idle
        ratio = used / (goal * counted) if counted else 1.0
        if abs(ratio - 1) > _TOLERANCE and (ratio > 1) == (used > goal * len(ready)):
            wanted = math.ceil(round(ratio * counted, 6))
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


_APPLIED: Final = frozenset(
    {"Deployment", "StatefulSet", "ReplicaSet", "HorizontalPodAutoscaler", "PodDisruptionBudget"}
)

RIVALS: Final[
    Mapping[str, tuple[timedelta, Callable[[HollowRigCluster, VirtualClock, str], Rival]]]
] = {
    "gitops": (timedelta(minutes=1), GitOps),
    "hpa": (timedelta(seconds=15), Hpa),
    "operator": (timedelta(seconds=5), Operator),
}
"""How often each looks, and how it is made."""


def _operated(obj: Json) -> bool:
    """Whether the controller of an object is a custom resource."""
    owner = controller_of(obj)
    return owner is not None and owner["kind"] not in set(OwnerKind)


def _contains(live: Any, declared: Any) -> bool:
    """Whether what is declared stands in what lives, beside what others have filled in."""
    if isinstance(declared, dict):
        return isinstance(live, dict) and all(
            key in live and _contains(live[key], value) for key, value in declared.items()
        )
    if isinstance(declared, list):
        return (
            isinstance(live, list)
            and len(live) == len(declared)
            and all(map(_contains, live, declared))
        )
    return bool(live == declared)


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
