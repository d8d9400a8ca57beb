"""Taints with the effect NoExecute: pods that do not tolerate one go, some after a while.

Every pod tolerates a node that is not ready or unreachable for five minutes, unless it says
something else (see admission). So these taints seldom take a pod away before its node is deleted,
but the taint out-of-service takes all of them at once.

Source: k8s.io/kubernetes/pkg/controller/tainteviction/taint_eviction.go (processPodOnNode,
getMinTolerationTime);
https://kubernetes.io/docs/concepts/scheduling-eviction/taint-and-toleration/#taint-based-evictions
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import ClassVar, override

from plimsoll.adapters.kubernetes.objects import parse_node, parse_pod
from plimsoll.domain.kubernetes import Taint, tolerated
from plimsoll_simulation.fake_cluster.conditions import is_active
from plimsoll_simulation.fake_cluster.controllers.base import Controller
from plimsoll_simulation.fake_cluster.edits import Json, look
from plimsoll_simulation.fake_cluster.state import ClusterState
from plimsoll_simulation.fake_cluster.store import Change


class TaintEviction(Controller[str]):
    """The taint eviction controller, by node."""

    watches: ClassVar = frozenset({"nodes", "pods"})

    def __init__(self, state: ClusterState) -> None:
        super().__init__(state)
        self._taints: dict[str, Sequence[Taint]] = {}
        """Those of effect NoExecute, of the nodes that have any."""
        self._since: dict[str, datetime] = {}
        """When a pod, by its UID, was first seen to be there for a while only."""

    @override
    def observe(self, change: Change) -> None:
        if change.resource == "pods":
            node = look(change.object, "spec", "nodeName")
            if node in self._taints and look(change.before or {}, "spec") != change.object["spec"]:
                self.note(node)
            return
        name = change.object["metadata"]["name"]
        before = self._taints.pop(name, ())
        if change.type != "DELETED" and look(change.object, "spec", "taints"):
            now = [t for t in parse_node(change.object).taints if t.effect == "NoExecute"]
            if now:
                self._taints[name] = now
        if self._taints.get(name, ()) != before:
            self.note(name)

    @override
    def reconcile(self, key: str, now: datetime) -> None:
        taints = self._taints.get(key, ())
        for pod in self.state.indexes.on_node(key):
            uid = pod["metadata"]["uid"]
            patience = _patience(pod, taints) if taints and is_active(pod) else None
            if patience is None:
                self._since.pop(uid, None)
                continue
            end = self._since.setdefault(uid, now) + patience
            if end <= now:
                del self._since[uid]
                message = "Taint manager: deleting due to NoExecute taint"
                self.disrupt(pod, "DeletionByTaintManager", message, now)
            else:
                self.state.timers.write(end, lambda _: self.note(key))


def _patience(pod: Json, taints: Sequence[Taint]) -> timedelta | None:
    """Return how long a pod may stay; None for ever."""
    given = look(pod, "spec", "tolerations", default=())
    read = parse_pod(pod).scheduling.tolerations
    shortest: timedelta | None = None
    for taint in taints:
        used = next((g for g, t in zip(given, read, strict=True) if tolerated(taint, [t])), None)
        if used is None:
            return timedelta()
        seconds = used.get("tolerationSeconds")
        if seconds is not None:
            limit = timedelta(seconds=max(0, seconds))
            shortest = limit if shortest is None else min(shortest, limit)
    return shortest
