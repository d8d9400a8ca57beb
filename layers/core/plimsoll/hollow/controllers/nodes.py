"""Nodes that join, are cordoned, and vanish; and the pods that are left on what vanished.

An instance that vanishes takes its pods with it at once, but the API learns of it late: the node
turns unreachable when its heartbeat is missed for long enough, is deleted when the cloud says that
there is no such instance, and its pods are collected after a quarantine. Only then do most
controllers make new ones: with the defaults 95 to 115 s after the instance went.

Sources: k8s.io/kubernetes/pkg/controller/nodelifecycle (unreachable, MarkPodsNotReady, taints by
condition), k8s.io/cloud-provider/controllers/nodelifecycle (MonitorNodes), pkg/controller/podgc
(gcOrphaned, gcTerminating), https://kubernetes.io/docs/concepts/architecture/nodes/,
https://kubernetes.io/docs/concepts/cluster-administration/node-shutdown/#non-graceful-node-shutdown
Left out: heartbeats as such, eviction by NoExecute taints, zone-wide slow-downs.
"""

from __future__ import annotations

from datetime import datetime
from math import floor
from typing import ClassVar, override

from plimsoll.hollow.admission import admitted
from plimsoll.hollow.conditions import is_deleting, is_ready, with_condition
from plimsoll.hollow.controllers.base import Controller
from plimsoll.hollow.controllers.volumes import out_of_service
from plimsoll.hollow.edits import Json, look, put
from plimsoll.hollow.resources import BY_PLURAL
from plimsoll.hollow.stamps import stamp
from plimsoll.hollow.store import Change, key_of

_UNSCHEDULABLE = "node.kubernetes.io/unschedulable"
_UNREACHABLE = "node.kubernetes.io/unreachable"
_CORDONED: Json = {"key": _UNSCHEDULABLE, "effect": "NoSchedule"}


class NodeLifecycle(Controller[str]):
    """The node lifecycle controllers and the pod garbage collector."""

    watches: ClassVar = frozenset({"nodes"})

    @override
    def observe(self, change: Change) -> None:
        if change.type != "MODIFIED" or change.object.get("spec") != (change.before or {}).get(
            "spec"
        ):
            self.note(change.object["metadata"]["name"])

    @override
    def reconcile(self, key: str, now: datetime) -> None:
        node = self.store.get("nodes", "", key)
        if node is None:
            self._quarantine(key, now)
            return
        taints = look(node, "spec", "taints", default=[])
        cordoned = bool(look(node, "spec", "unschedulable"))
        if cordoned != any(t["key"] == _UNSCHEDULABLE for t in taints):
            others = [t for t in taints if t["key"] != _UNSCHEDULABLE]
            taints = [*others, *([{**_CORDONED, "timeAdded": stamp(now)}] if cordoned else [])]
            node = self.store.replace("nodes", put(node, ("spec", "taints"), taints), now=now)
        if not is_ready(node) and out_of_service(node):
            for pod in self.world.indexes.on_node(key):
                if is_deleting(pod):
                    self.store.remove("pods", *key_of(pod), now=now)

    def join(self, node: Json, now: datetime) -> None:
        """Register a Node, Ready; one that is there already is Ready again."""
        node = admitted(BY_PLURAL["nodes"], node, self.store)
        for kind, holds in (
            ("MemoryPressure", "False"),
            ("DiskPressure", "False"),
            ("PIDPressure", "False"),
            ("Ready", "True"),
        ):
            node = with_condition(node, kind, holds, now=now)
        name = node["metadata"]["name"]
        self.world.vanished.discard(name)
        if self.store.get("nodes", "", name) is None:
            self.store.create("nodes", node, now=now)
        else:
            self.store.replace("nodes", node, now=now)

    def vanish(self, name: str, now: datetime) -> None:
        """Let a node's instance be gone; the API learns of it in its own time."""
        self.world.vanished.add(name)
        node = self.store.get("nodes", "", name)
        if node is not None:
            uid = node["metadata"]["uid"]
            at = now + self.world.settings.unreachable
            self.world.timers.write(at, lambda then: self._unreachable(name, uid, then))

    def _unreachable(self, name: str, uid: str, now: datetime) -> None:
        node = self.store.get("nodes", "", name)
        if node is None or node["metadata"]["uid"] != uid or name not in self.world.vanished:
            return
        node = with_condition(
            node,
            "Ready",
            "Unknown",
            now=now,
            reason="NodeStatusUnknown",
            message="Kubelet stopped posting node status.",
        )
        taints = [
            {"key": _UNREACHABLE, "effect": effect, "timeAdded": stamp(now)}
            for effect in ("NoSchedule", "NoExecute")
        ]
        have = look(node, "spec", "taints", default=[])
        self.store.replace("nodes", put(node, ("spec", "taints"), [*have, *taints]), now=now)
        for pod in self.world.indexes.on_node(name):
            if is_ready(pod):
                self.store.replace("pods", with_condition(pod, "Ready", "False", now=now), now=now)
        at = now + self.world.settings.node_deleted
        self.world.timers.write(at, lambda then: self._delete(name, uid, then))

    def _delete(self, name: str, uid: str, now: datetime) -> None:
        node = self.store.get("nodes", "", name)
        if node is not None and node["metadata"]["uid"] == uid and name in self.world.vanished:
            self.store.remove("nodes", "", name, now=now)

    def _quarantine(self, name: str, now: datetime) -> None:
        """Collect a missing node's pods at the first scan after they were found orphaned."""
        if not self.world.indexes.on_node(name):
            return
        settings = self.world.settings
        scans = floor((now - self.world.started) / settings.orphans_scan) + 1
        found = self.world.started + scans * settings.orphans_scan
        waits = -(-settings.orphans_quarantine // settings.orphans_scan) * settings.orphans_scan
        self.world.timers.write(found + waits, lambda then: self._collect(name, then))

    def _collect(self, name: str, now: datetime) -> None:
        if self.store.get("nodes", "", name) is not None:
            return
        for pod in self.world.indexes.on_node(name):
            self.store.remove("pods", *key_of(pod), now=now)
