"""The fleet on a real control plane, and its owners, who follow the advice."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Final

from plimsoll.adapters.kubernetes.requests import MERGE_PATCH
from plimsoll.adapters.kubernetes.transport import Transport
from plimsoll.domain.errors import Refused, Temporary
from plimsoll_service.wire.gpu_plan import MIG_CONFIG
from plimsoll_simulation.fake_cluster.conditions import is_ready
from plimsoll_testbed.rigs.controlplane.plane import ControlPlane
from plimsoll_testbed.rigs.gpus.workloads import (
    COUNT,
    NAMESPACE,
    OPERANDS,
    OPERATOR,
    WORKLOADS,
    Json,
    Workload,
    manifest,
    node,
    operand,
)

PATIENCE_SECONDS: Final = 90.0
_POLL_SECONDS: Final = 0.3
_ATTEMPTS: Final = 5
_ORDER: Final = ("gpu-c", "gpu-a", "gpu-b")
"""In which nodes join: the training finds an empty one, and each workload goes to its own."""
_NODES: Final = "/api/v1/nodes"
_STRATEGIC: Final = "application/strategic-merge-patch+json"
_RESOURCES: Final = {"Deployment": "deployments", "StatefulSet": "statefulsets", "Job": "jobs"}
_BY_NAME: Final = {each.name: each for each in WORKLOADS}


@dataclass(slots=True, kw_only=True)
class Fleet:
    """Nodes and workloads.

    Args:
        api: a control plane, with all rights.
        join: lets a node join it.
    """

    api: Transport
    join: Callable[[Json], None]
    missing: Counter[str] = field(default_factory=Counter)
    """By workload, the most pods that were not Ready at a time at which its owner wanted them."""
    _wanted: dict[str, int] = field(default_factory=dict)
    """Replicas of Deployments that serve."""

    @classmethod
    def on(cls, plane: ControlPlane) -> Fleet:
        """Return the fleet of a control plane that runs."""
        return cls(api=plane.transport(), join=plane.join)

    def settle_in(self) -> None:
        """Let nodes join and workloads start, each on its node of the script."""
        for name in (NAMESPACE, OPERATOR):
            self.send("POST", "/api/v1/namespaces", {"metadata": {"name": name}})
        for name in OPERANDS:
            self.send("POST", f"/apis/apps/v1/namespaces/{OPERATOR}/daemonsets", operand(name))
        for name in _ORDER:
            self.join(node(name))
            mine = [each for each in WORKLOADS if each.node == name]
            for of in mine:
                self.send("POST", _collection(of), manifest(of))
            self.until(partial(self._settled, mine), f"{name} is not full")
        self._wanted = {each.name: each.pods for each in WORKLOADS if each.kind == "Deployment"}

    def objects(self) -> Json:
        """Return what `kubectl get nodes,pods --all-namespaces --output json` prints."""
        pods = self.send("GET", "/api/v1/pods")["items"]
        return {
            "items": [
                *({"kind": "Node"} | n for n in self._nodes()),
                *({"kind": "Pod"} | p for p in pods),
            ]
        }

    def scale(self, name: str, replicas: int) -> None:
        """Scale a workload, as its owner or an autoscaler does."""
        self._wanted.pop(name, None)
        self.send("PATCH", _path(name), {"spec": {"replicas": replicas}}, MERGE_PATCH)

    def change_template(self, name: str, change: Json) -> None:
        """Apply the patch of a pod template."""
        self.send("PATCH", _path(name), change, _STRATEGIC)

    def roll_out(self, names: Iterable[str]) -> None:
        """Wait until all pods of workloads are Ready, and of their new templates."""
        self.until(lambda: all(map(self._rolled_out, names)), "templates are not rolled out")

    def remove(self, name: str) -> None:
        """Consolidate a node that is not needed: what is left on it starts elsewhere first."""
        self.send("PATCH", f"{_NODES}/{name}", {"spec": {"unschedulable": True}}, MERGE_PATCH)
        left = {_workload(pod) for pod in self._pods() if pod["spec"].get("nodeName") == name}
        for each in left:
            mark = {"spec": {"template": {"metadata": {"annotations": {"moved-from": name}}}}}
            self.send("PATCH", _path(each), mark, MERGE_PATCH)
        self.until(
            lambda: all(pod["spec"].get("nodeName") != name for pod in self._pods()),
            f"{name} is not empty",
        )
        self.send("DELETE", f"{_NODES}/{name}")

    def pods(self, name: str) -> set[str]:
        """Return the uids of the pods of a workload."""
        return {pod["metadata"]["uid"] for pod in self._pods() if _workload(pod) == name}

    def gpus(self) -> int:
        """Return how many GPUs the nodes have."""
        return sum(int(each["metadata"]["labels"][COUNT]) for each in self._nodes())

    def stranded(self, supplies: Mapping[str, Mapping[str, int]]) -> Mapping[str, str]:
        """Return what is wrong with nodes that are not in service with the GPUs of their layout, by name."""
        found = {}
        for each in self._nodes():
            shown = each["status"]["allocatable"].items()
            gpus = {
                name: int(n) for name, n in shown if name.startswith("nvidia.com/") and n != "0"
            }
            layout = each["metadata"]["labels"][MIG_CONFIG]
            if each["spec"].get("unschedulable"):
                found[each["metadata"]["name"]] = "it is cordoned"
            elif not is_ready(each):
                found[each["metadata"]["name"]] = "it is not Ready"
            elif gpus != supplies[layout]:
                found[each["metadata"]["name"]] = f"it shows {gpus} and not {layout}"
        return found

    def until(self, holds: Callable[[], bool], otherwise: str) -> None:
        """Wait, and watch over the workloads that serve.

        Raises:
            Refused: it takes too long.
        """
        end = time.monotonic() + PATIENCE_SECONDS
        while not holds():
            if time.monotonic() > end:
                raise Refused(f"{otherwise} after {PATIENCE_SECONDS:.0f} s")
            self.missing |= Counter(self._wanted) - self._ready()
            time.sleep(_POLL_SECONDS)

    def send(
        self, method: str, path: str, body: Json | None = None, kind: str = "application/json"
    ) -> Any:
        """Make a request and return the answer.

        Raises:
            Refused: the API server refuses it.
        """
        for _ in range(_ATTEMPTS):
            with suppress(Temporary):  # it is busy
                answer = self.api.call(method, path, body=body, content_type=kind)
                break
        else:
            raise Refused(f"{method} {path}: no answer to {_ATTEMPTS} requests")
        if answer.status >= 300:  # noqa: PLR2004 - neither done nor created
            raise Refused(f"{method} {path}: {answer.status} {answer.body}")
        return answer.body

    def _nodes(self) -> Sequence[Json]:
        found: Sequence[Json] = self.send("GET", _NODES)["items"]
        return found

    def _pods(self) -> Sequence[Json]:
        found: Sequence[Json] = self.send("GET", f"/api/v1/namespaces/{NAMESPACE}/pods")["items"]
        return found

    def _settled(self, workloads: Iterable[Workload]) -> bool:
        ready = self._ready()
        return all(ready[of.name] == of.pods for of in workloads)

    def _ready(self) -> Counter[str]:
        return Counter(_workload(pod) for pod in self._pods() if _serves(pod))

    def _rolled_out(self, name: str) -> bool:
        found = self.send("GET", _path(name))
        status, replicas = found["status"], found["spec"]["replicas"]
        counts = [status.get(f"{each}eplicas", 0) for each in ("r", "updatedR", "readyR")]
        seen = status.get("observedGeneration") == found["metadata"]["generation"]
        return bool(seen) and counts == [replicas] * len(counts)


def _serves(pod: Json) -> bool:
    return is_ready(pod) and "deletionTimestamp" not in pod["metadata"]


def _workload(pod: Json) -> str:
    """Return whose pod it is, also where it was released from its controller."""
    return next(name for name in _BY_NAME if pod["metadata"]["name"].startswith(f"{name}-"))


def _collection(of: Workload) -> str:
    group = "batch" if of.kind == "Job" else "apps"
    return f"/apis/{group}/v1/namespaces/{NAMESPACE}/{_RESOURCES[of.kind]}"


def _path(name: str) -> str:
    return f"{_collection(_BY_NAME[name])}/{name}"
