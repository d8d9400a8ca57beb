"""The scheduler: pods that wait for a node, highest priority first, then first come.

The predicates and the scoring are those of `plimsoll.domain.fit`, the same that plans are made
with; the test suite against a real control plane is the independent check of both. A pod that fits
nowhere waits until something changed that could let it in.

Sources: https://kubernetes.io/docs/concepts/scheduling-eviction/kube-scheduler/,
k8s.io/kubernetes/pkg/scheduler/backend/queue (what moves pods out of the unschedulable ones),
pkg/scheduler/schedule_one.go (nodes are looked at from another one on each time, and chance decides
among equals: without it whole workloads would pile up on neighbouring nodes)
Left out: preemption, other schedulers' names, scheduling gates, extenders, backoff.
"""

from __future__ import annotations

from datetime import datetime
from typing import ClassVar, override

from plimsoll.domain.fit import Board
from plimsoll.domain.objects import parse_claim, parse_node, parse_pod
from plimsoll.domain.pods import Pod
from plimsoll.hollow.conditions import condition, is_active, is_finished, with_condition
from plimsoll.hollow.controllers.base import Controller
from plimsoll.hollow.controllers.volumes import bind_claims
from plimsoll.hollow.edits import Json, look
from plimsoll.hollow.store import Change, Key
from plimsoll.hollow.subresources import bind
from plimsoll.hollow.world import World


class Scheduler(Controller[tuple[str, Key]]):
    """One kube-scheduler with its default profile."""

    watches: ClassVar = frozenset({"pods", "nodes", "persistentvolumeclaims", "persistentvolumes"})

    def __init__(self, world: World) -> None:
        super().__init__(world)
        self._board = Board([], [])
        self._placed: dict[Key, Pod] = {}
        self._waiting: dict[Key, Pod] = {}
        self._fresh: dict[Key, None] = {}
        """Waiting, and not tried since they changed."""
        self._retry = False
        """Something changed that may let in any pod that waits."""

    @override
    def observe(self, change: Change) -> None:
        if change.type == "MODIFIED" and change.before is not None and not _matters(change):
            return
        self.note((change.resource, change.key))

    @override
    def reconcile(self, key: tuple[str, Key], now: datetime) -> None:
        resource, name = key
        obj = self.store.get(resource, *name)
        match resource:
            case "pods":
                self._follow_pod(name, obj)
            case "nodes":
                self._retry = True
                if obj is None:
                    self._board.remove_node(name[1])
                else:
                    self._add_node(obj)
            case "persistentvolumeclaims":
                self._retry = True
                if obj is not None:
                    volume = look(obj, "spec", "volumeName", default="")
                    bound = self.store.get("persistentvolumes", "", volume)
                    self._board.set_claim(parse_claim(obj, bound))
            case _:
                self._retry = True

    @override
    def work(self, now: datetime) -> None:
        super().work(now)
        keys = self._waiting if self._retry else self._fresh
        self._retry = False
        tried = sorted(
            ((key, self._waiting[key]) for key in keys if key in self._waiting),
            key=lambda item: -item[1].priority,
        )
        self._fresh = {}
        refused: set[int] = set()
        for key, pod in tried:
            same = id(pod.scheduling)
            if same not in refused:  # else a pod of the same template did not fit a moment ago
                nodes = self._board.candidates(pod)
                if nodes and self._missing(pod) is None:
                    turned = self.world.identities.turned(nodes)  # equals are chosen by chance
                    self._bind(key, self._board.best(pod, turned).name, now)
                    if _relates(pod):
                        refused.clear()
                    continue
                refused.add(same)
            self._refuse(key, pod, now)

    def _follow_pod(self, key: Key, obj: Json | None) -> None:
        before = self._placed.get(key)
        if obj is None or is_finished(obj) or (before and before.uid != obj["metadata"]["uid"]):
            self._waiting.pop(key, None)
            if before is not None:
                self._board.remove(before)
                del self._placed[key]
                self._retry = True
        if obj is None or is_finished(obj):
            return
        if before is not None and before.resource_version == obj["metadata"]["resourceVersion"]:
            return  # it was this scheduler that bound it
        node = look(obj, "spec", "nodeName")
        if node is not None:
            self._waiting.pop(key, None)
            pod = parse_pod(obj)
            self._placed[key] = pod
            if node in self._board.nodes:
                self._board.place(pod, node)
            # A neighbour it was waiting for may have come.
            self._fresh |= {k: None for k, p in self._waiting.items() if _relates(p)}
        elif is_active(obj):
            self._waiting[key] = parse_pod(obj)
            self._fresh[key] = None

    def _add_node(self, obj: Json) -> None:
        node = parse_node(obj)
        new = node.name not in self._board.nodes
        self._board.add_node(node)
        if new:
            for pod in self.world.indexes.on_node(node.name):
                key = (pod["metadata"]["namespace"], pod["metadata"]["name"])
                if key in self._placed:
                    self._board.place(self._placed[key], node.name)

    def _missing(self, pod: Pod) -> str | None:
        for name in pod.scheduling.claims:
            if self.store.get("persistentvolumeclaims", pod.namespace, name) is None:
                return f'persistentvolumeclaim "{name}" not found'
        return None

    def _bind(self, key: Key, node: str, now: datetime) -> None:
        obj = self.store.must_get("pods", *key)
        bind_claims(self.store, obj, self.store.must_get("nodes", "", node), now=now)
        bound = bind(self.store, obj, node, now=now)
        del self._waiting[key]
        # The board must know before the next pod is placed, not when the change comes round.
        pod = self._placed[key] = parse_pod(bound)
        self._board.place(pod, node)

    def _refuse(self, key: Key, pod: Pod, now: datetime) -> None:
        """Say once why a pod waits: again for every change elsewhere would be a write each."""
        obj = self.store.must_get("pods", *key)
        known = condition(obj, "PodScheduled")
        if known is not None and known["status"] == "False":
            return
        why = self._missing(pod) or self._board.explain(pod)
        told = with_condition(
            obj, "PodScheduled", "False", now=now, reason="Unschedulable", message=why
        )
        self.store.replace("pods", told, now=now)


def _relates(pod: Pod) -> bool:
    scheduling = pod.scheduling
    return bool(scheduling.affinity or scheduling.anti_affinity or scheduling.spread)


def _matters(change: Change) -> bool:
    """Whether a modified object is another to the scheduler than it was."""
    old, new = change.before or {}, change.object
    if change.resource == "pods":
        if is_finished(new) != is_finished(old):
            return True
        return any(
            look(old, *path) != look(new, *path)
            for path in (("spec",), ("metadata", "labels"), ("metadata", "deletionTimestamp"))
        )
    if change.resource == "nodes":
        ready = [condition(obj, "Ready") for obj in (old, new)]
        return any(
            look(old, *path) != look(new, *path)
            for path in (("spec",), ("metadata", "labels"), ("status", "allocatable"))
        ) or [r and r["status"] for r in ready[:1]] != [r and r["status"] for r in ready[1:]]
    return True
