"""The cluster of one run, and what is seen of it."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from plimsoll.domain.errors import Refused
from plimsoll.domain.kubernetes import NODE_POOL
from plimsoll_simulation.fake_cluster.conditions import is_deleting, is_ready
from plimsoll_simulation.scenario.manifests import Manifest
from plimsoll_testbed.rigs.controlplane import ControlPlane

POOL: Final = "spot"
HORIZON_S: Final = 150.0
LOOK_S: Final = 0.25
READY_S: Final = 300.0
_CREATED: Final = 201
_WORKLOADS: Final = {"Deployment": "deployments", "StatefulSet": "statefulsets"}

type Json = dict[str, Any]


@dataclass(slots=True, kw_only=True)
class Outcome:
    """What was seen of each workload, by its name, and of the nodes."""

    lost: dict[str, float] = field(default_factory=dict)
    """Ready replicas short of those wanted, by seconds."""
    zero: dict[str, float] = field(default_factory=dict)
    """Seconds without a ready replica."""
    launched: int = 0
    """Nodes beyond those of the start."""
    killed: int = 0
    """Pods that ran on a node when its instance ended."""


class WatchedCluster:
    """The cluster of one run, and what is seen of it."""

    def __init__(self, plane: ControlPlane, objects: Sequence[Manifest]) -> None:
        self._plane = plane
        self._api = plane.transport()
        self._objects = objects
        self._wanted = {
            m.name: m.body["spec"].get("replicas", 1) for m in objects if m.kind in _WORKLOADS
        }
        self._known: set[str] = set()
        self.outcome = Outcome(
            lost=dict.fromkeys(self._wanted, 0.0), zero=dict.fromkeys(self._wanted, 0.0)
        )

    def start(self) -> None:
        """Create the objects and wait until all is Ready."""
        for manifest in self._objects:
            body = dict(manifest.sent)
            if "template" in body.get("spec", {}):
                body["spec"]["template"]["spec"]["nodeSelector"] = {NODE_POOL: POOL}
            group = body["apiVersion"]
            root = f"/apis/{group}" if "/" in group else f"/api/{group}"
            name = f"{manifest.kind.lower()}s"
            path = f"{root}/namespaces/{manifest.namespace}/{name}"
            answer = self._api.call("POST", path, body=body, content_type="application/json")
            if answer.status != _CREATED:
                raise Refused(f"{manifest.kind} {manifest.name}: {answer.status} {answer.body}")
        end = time.monotonic() + READY_S
        while self._serving() != self._wanted:
            if time.monotonic() > end:
                raise Refused(f"not all is Ready: {self._serving()}")
            time.sleep(LOOK_S)
        self._known = set(self.nodes())

    def nodes(self) -> Sequence[str]:
        """Return the nodes of the NodePool."""
        items = self._api.call("GET", "/api/v1/nodes").body["items"]
        return [n["metadata"]["name"] for n in items if NODE_POOL in n["metadata"]["labels"]]

    def watch(self, events: Sequence[tuple[float, Callable[[], None]]]) -> None:
        """Look at what serves until the horizon, while events happen at their times."""
        begun = last = time.monotonic()
        threads = [threading.Timer(at, act) for at, act in events]
        for thread in threads:
            thread.start()
        while last - begun < HORIZON_S:
            time.sleep(LOOK_S)
            serving, now = self._serving(), time.monotonic()
            for name, wanted in self._wanted.items():
                self.outcome.lost[name] += max(0, wanted - serving[name]) * (now - last)
                self.outcome.zero[name] += (now - last) * (serving[name] == 0)
            last = now
            self.outcome.launched += len(new := set(self.nodes()) - self._known)
            self._known |= new
        for thread in threads:
            thread.join()

    def end_instances(self, nodes: Sequence[str]) -> None:
        """End the instances of nodes that are still there, and whatever runs on them."""
        there = set(nodes) & set(self.nodes())
        self.outcome.killed += sum(p["spec"].get("nodeName") in there for p in self._pods())
        self._plane.vanish(*sorted(there))

    def _pods(self) -> Sequence[Json]:
        items: Sequence[Json] = self._api.call("GET", "/api/v1/namespaces/default/pods").body[
            "items"
        ]
        return items

    def _serving(self) -> Mapping[str, int]:
        found = dict.fromkeys(self._wanted, 0)
        for pod in self._pods():
            app = pod["metadata"].get("labels", {}).get("app", "")
            found[app] += is_ready(pod) and not is_deleting(pod)
        return {name: min(count, self._wanted[name]) for name, count in found.items()}
