"""HorizontalPodAutoscalers without metrics: they hold minReplicas and maxReplicas.

Where there are no metrics, an autoscaler still raises a count that is below its minimum and lowers
one above its maximum, but never takes back what a raised minimum has added.

Source: k8s.io/kubernetes/pkg/controller/podautoscaler/horizontal.go (1.37; reconcileAutoscaler), which
looks when an autoscaler is made or its spec changes, and every 15 s from the first time on;
https://kubernetes.io/docs/tasks/run-application/horizontal-pod-autoscale/
"""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import ClassVar, override

from plimsoll_simulation.fake_cluster.controllers.base import Controller
from plimsoll_simulation.fake_cluster.edits import Json, look, put
from plimsoll_simulation.fake_cluster.resources import BY_KIND
from plimsoll_simulation.fake_cluster.state import ClusterState
from plimsoll_simulation.fake_cluster.store import Change, Key

_EVERY = timedelta(seconds=15)


class Autoscalers(Controller[Key]):
    """The horizontal pod autoscaler."""

    watches: ClassVar = frozenset({"horizontalpodautoscalers", "deployments", "statefulsets"})

    def __init__(self, state: ClusterState) -> None:
        super().__init__(state)
        self._first: dict[Key, datetime] = {}
        """When each autoscaler was made."""
        self._changed: set[Key] = set()

    @override
    def observe(self, change: Change) -> None:
        if change.resource == "horizontalpodautoscalers":
            if change.type == "DELETED":
                self._first.pop(change.key, None)
                return
            self._first.setdefault(change.key, change.at)
            if change.before is None or change.before["spec"] != change.object["spec"]:
                self._changed.add(change.key)
                self.note(change.key)
            return
        for scaler in self.store.all("horizontalpodautoscalers", change.key[0]):
            target = scaler["spec"]["scaleTargetRef"]
            same = BY_KIND[target["kind"]].plural == change.resource
            if same and target["name"] == change.key[1]:
                self.note((change.key[0], scaler["metadata"]["name"]))

    @override
    def reconcile(self, key: Key, now: datetime) -> None:
        if key in self._changed:
            self._changed.discard(key)
            self._hold(key, now)
        elif self._off(key) is not None:
            first = self._first[key]
            at = first + ((now - first) // _EVERY + 1) * _EVERY
            self.state.timers.write(at, lambda then: self._hold(key, then))

    def _hold(self, key: Key, now: datetime) -> None:
        off = self._off(key)
        if off is None:
            return
        target, wanted = off
        scaled = put(target, ("spec", "replicas"), wanted)
        self.store.replace(BY_KIND[target["kind"]].plural, scaled, now=now)

    def _off(self, key: Key) -> tuple[Json, int] | None:
        """Return a target whose count is out of bounds, and the count it should have."""
        scaler = self.store.get("horizontalpodautoscalers", *key)
        if scaler is None:
            return None
        ref = scaler["spec"]["scaleTargetRef"]
        target = self.store.get(BY_KIND[ref["kind"]].plural, key[0], ref["name"])
        replicas = look(target or {}, "spec", "replicas", default=0)
        if target is None or not replicas:  # 0 switches an autoscaler off
            return None
        least = scaler["spec"].get("minReplicas", 1)
        wanted = max(least, min(replicas, scaler["spec"]["maxReplicas"]))
        return None if wanted == replicas else (target, wanted)
