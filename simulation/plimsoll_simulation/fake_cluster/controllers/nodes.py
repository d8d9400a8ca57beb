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

from plimsoll_simulation.fake_cluster.admission import admitted
from plimsoll_simulation.fake_cluster.conditions import (
    is_deleting,
    is_finished,
    is_ready,
    with_condition,
)
from plimsoll_simulation.fake_cluster.controllers.base import Controller
from plimsoll_simulation.fake_cluster.controllers.volumes import out_of_service
from plimsoll_simulation.fake_cluster.deletion import DeleteOptions, delete
from plimsoll_simulation.fake_cluster.edits import Json, look, put
from plimsoll_simulation.fake_cluster.resources import BY_PLURAL
from plimsoll_simulation.fake_cluster.stamps import stamp
from plimsoll_simulation.fake_cluster.store import Change

_UNSCHEDULABLE = "node.kubernetes.io/unschedulable"
_UNREACHABLE = "node.kubernetes.io/unreachable"
_NOT_READY = "node.kubernetes.io/not-ready"
_SHUTDOWN = "node.cloudprovider.kubernetes.io/shutdown"
_CONDITIONS = {
    ("Ready", "False"): (_NOT_READY, ("NoSchedule", "NoExecute")),
    ("Ready", "Unknown"): (_UNREACHABLE, ("NoSchedule", "NoExecute")),
    ("MemoryPressure", "True"): ("node.kubernetes.io/memory-pressure", ("NoSchedule",)),
    ("DiskPressure", "True"): ("node.kubernetes.io/disk-pressure", ("NoSchedule",)),
    ("PIDPressure", "True"): ("node.kubernetes.io/pid-pressure", ("NoSchedule",)),
}
"""The taints that follow a condition: nodeConditionToTaintKeyStatusMap, and those of Ready."""
_OWN = {_UNSCHEDULABLE, *(key for key, _ in _CONDITIONS.values())}


class NodeLifecycle(Controller[str]):
    """The node lifecycle controllers and the pod garbage collector."""

    watches: ClassVar = frozenset({"nodes"})

    @override
    def observe(self, change: Change) -> None:
        before = change.before or {}
        if (
            change.type != "MODIFIED"
            or change.object.get("spec") != before.get("spec")
            or _states(change.object) != _states(before)
        ):
            self.note(change.object["metadata"]["name"])

    @override
    def reconcile(self, key: str, now: datetime) -> None:
        node = self.store.get("nodes", "", key)
        if node is None:
            self._quarantine(key, now)
            return
        taints = look(node, "spec", "taints", default=[])
        wanted, have = _wanted(node), [(t["key"], t["effect"]) for t in taints]
        if set(wanted) != {pair for pair in have if pair[0] in _OWN}:
            kept = [t for t in taints if t["key"] not in _OWN or (t["key"], t["effect"]) in wanted]
            kept += [
                {"key": key, "effect": effect, "timeAdded": stamp(now)}
                for key, effect in wanted
                if (key, effect) not in have
            ]
            node = self.store.replace("nodes", put(node, ("spec", "taints"), kept), now=now)
        if not is_ready(node) and out_of_service(node):
            for pod in self.state.indexes.on_node(key):
                if is_deleting(pod):
                    self._collect(pod, now)

    def join(self, node: Json, now: datetime) -> None:
        """Register a Node, Ready; one that is there already is Ready again."""
        name = node["metadata"]["name"]
        known = self.store.get("nodes", "", name)
        node = admitted(BY_PLURAL["nodes"], node, self.store, now) if known is None else known
        for kind, holds in (
            ("MemoryPressure", "False"),
            ("DiskPressure", "False"),
            ("PIDPressure", "False"),
            ("Ready", "True"),
        ):
            node = with_condition(node, kind, holds, now=now)
        self.state.vanished.discard(name)
        if known is None:
            self.store.create("nodes", node, now=now)
            return
        taints = look(node, "spec", "taints", default=[])
        kept = [taint for taint in taints if taint["key"] != _SHUTDOWN]
        self.store.replace("nodes", put(node, ("spec", "taints"), kept), now=now)

    def vanish(self, name: str, now: datetime, *, stopped: bool) -> None:
        """Let a node's instance be gone; the API learns of it in its own time."""
        self.state.vanished.add(name)
        node = self.store.get("nodes", "", name)
        if node is not None:
            uid = node["metadata"]["uid"]
            at = now + self.state.settings.unreachable
            self.state.timers.write(
                at, lambda then: self._unreachable(name, uid, then, stopped=stopped)
            )

    def _unreachable(self, name: str, uid: str, now: datetime, *, stopped: bool) -> None:
        node = self.store.get("nodes", "", name)
        if node is None or node["metadata"]["uid"] != uid or name not in self.state.vanished:
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
        for pod in self.state.indexes.on_node(name):
            if is_ready(pod):
                self.store.replace("pods", with_condition(pod, "Ready", "False", now=now), now=now)
        at = now + self.state.settings.node_deleted
        self.state.timers.write(at, lambda then: self._lost(name, uid, then, stopped=stopped))

    def _lost(self, name: str, uid: str, now: datetime, *, stopped: bool) -> None:
        """Delete a Node whose instance is gone, or taint it while that is stopped."""
        node = self.store.get("nodes", "", name)
        if node is None or node["metadata"]["uid"] != uid or name not in self.state.vanished:
            return
        if not stopped:
            self.store.remove("nodes", "", name, now=now)
            return
        taints = look(node, "spec", "taints", default=[])
        shut = {"key": _SHUTDOWN, "effect": "NoSchedule"}
        self.store.replace("nodes", put(node, ("spec", "taints"), [*taints, shut]), now=now)

    def _quarantine(self, name: str, now: datetime) -> None:
        """Collect a missing node's pods at the first scan after they were found orphaned."""
        if not self.state.indexes.on_node(name):
            return
        settings = self.state.settings
        scans = floor((now - self.state.started) / settings.orphans_scan) + 1
        found = self.state.started + scans * settings.orphans_scan
        waits = -(-settings.orphans_quarantine // settings.orphans_scan) * settings.orphans_scan
        self.state.timers.write(found + waits, lambda then: self._collect_orphans(name, then))

    def _collect_orphans(self, name: str, now: datetime) -> None:
        if self.store.get("nodes", "", name) is not None:
            return
        for pod in self.state.indexes.on_node(name):
            why, message = "DeletionByPodGC", "PodGC: node no longer exists"
            told = with_condition(
                pod, "DisruptionTarget", "True", now=now, reason=why, message=message
            )
            self._collect(pod if is_finished(pod) else told, now)

    def _collect(self, pod: Json, now: datetime) -> None:
        """Say of a pod that it failed, for want of a kubelet that could, and take it away."""
        if not is_finished(pod):
            pod = self.store.replace("pods", put(pod, ("status", "phase"), "Failed"), now=now)
        delete(self.store, "pods", pod, DeleteOptions(grace_seconds=0), now=now)


def _states(node: Json) -> list[tuple[str, str]]:
    return [(c["type"], c["status"]) for c in look(node, "status", "conditions", default=())]


def _wanted(node: Json) -> list[tuple[str, str]]:
    """Return key and effect of the taints that a cordon and the conditions call for."""
    wanted = [
        (key, effect)
        for state in _states(node)
        if state in _CONDITIONS
        for key, effects in [_CONDITIONS[state]]
        for effect in effects
    ]
    if look(node, "spec", "unschedulable"):
        wanted.append((_UNSCHEDULABLE, "NoSchedule"))
    return wanted
