"""The status of PodDisruptionBudgets: how many pods may be disrupted now.

Source: k8s.io/kubernetes/pkg/controller/disruption/disruption.go (1.36);
https://kubernetes.io/docs/tasks/run-application/configure-pdb/
The surprise: `maxUnavailable` and percentages are reckoned from what the controllers of the pods
*want* (`spec.replicas`), a whole `minAvailable` from the pods there are.
Left out: scale subresources of custom resources.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from datetime import datetime, timedelta
from typing import ClassVar, override

from plimsoll.adapters.kubernetes.objects import parse_selector
from plimsoll.domain.kubernetes import Selector, matches
from plimsoll_simulation.fake_cluster.conditions import (
    controller_of,
    is_deleting,
    is_ready,
    with_condition,
)
from plimsoll_simulation.fake_cluster.controllers.base import Controller
from plimsoll_simulation.fake_cluster.controllers.rollouts import scaled
from plimsoll_simulation.fake_cluster.edits import Json, look, put
from plimsoll_simulation.fake_cluster.stamps import moment
from plimsoll_simulation.fake_cluster.state import ClusterState
from plimsoll_simulation.fake_cluster.store import Change, Key

_UNCONFIRMED = timedelta(minutes=2)
"""After this long an eviction that deleted nothing is forgotten: DeletionTimeout."""
_PLURALS = {"Deployment": "deployments", "ReplicaSet": "replicasets", "StatefulSet": "statefulsets"}


class Budgets(Controller[Key]):
    """The disruption controller."""

    watches: ClassVar = frozenset({"poddisruptionbudgets", "pods"})

    def __init__(self, state: ClusterState) -> None:
        super().__init__(state)
        self._selectors: dict[Key, Selector] = {}
        self._members: defaultdict[Key, dict[Key, None]] = defaultdict(dict)
        self._of_pod: defaultdict[Key, list[Key]] = defaultdict(list)
        """The same from the other side: the budgets of each pod."""

    @override
    def observe(self, change: Change) -> None:
        key = change.key
        if change.resource == "poddisruptionbudgets":
            self._follow(key, change)
            self.note(key)
            return
        meta = change.object["metadata"]
        labels = meta.get("labels") or {}
        if change.before is not None and change.type == "MODIFIED":
            old = change.before["metadata"].get("labels") or {}
            if labels is old or labels == old:
                for budget in self._of_pod.get(key, ()):
                    self.note(budget)
                return
        mine = []
        for budget, selector in self._selectors.items():
            if budget[0] != key[0]:
                continue
            if change.type != "DELETED" and matches(selector, labels):
                self._members[budget][key] = None
                mine.append(budget)
                self.note(budget)
            elif self._members[budget].pop(key, key) is None:
                self.note(budget)
        self._of_pod[key] = mine
        if change.type == "DELETED":
            del self._of_pod[key]

    def _follow(self, key: Key, change: Change) -> None:
        selector = None
        if change.type != "DELETED":
            selector = parse_selector(look(change.object, "spec", "selector"))
            if self._selectors.get(key) == selector:
                return
        self._selectors.pop(key, None)
        for pod in self._members.pop(key, {}):
            self._of_pod[pod].remove(key)
        if selector is None:
            return
        self._selectors[key] = selector
        self._members[key] = {
            (key[0], pod["metadata"]["name"]): None
            for pod in self.store.all("pods", key[0])
            if matches(selector, pod["metadata"].get("labels") or {})
        }
        for member in self._members[key]:
            self._of_pod[member].append(key)

    @override
    def reconcile(self, key: Key, now: datetime) -> None:
        budget = self.store.get("poddisruptionbudgets", *key)
        if budget is None:
            return
        found = (self.store.get("pods", *name) for name in self._members[key])
        pods = [pod for pod in found if pod is not None]
        expected, desired = self._expected(budget, pods)
        disrupted = self._disrupted(key, budget, pods, now)
        healthy = sum(
            1
            for pod in pods
            if is_ready(pod) and not is_deleting(pod) and pod["metadata"]["name"] not in disrupted
        )
        allowed = max(0, healthy - desired) if expected > 0 else 0
        status = {
            "observedGeneration": budget["metadata"]["generation"],
            "disruptionsAllowed": allowed,
            "currentHealthy": healthy,
            "desiredHealthy": desired,
            "expectedPods": expected,
            "conditions": look(budget, "status", "conditions", default=[]),
        }
        if disrupted:
            status["disruptedPods"] = disrupted
        reported = with_condition(
            put(budget, ("status",), status),
            "DisruptionAllowed",
            "True" if allowed else "False",
            now=now,
            reason="SufficientPods" if allowed else "InsufficientPods",
            message="",
        )
        self.store.replace("poddisruptionbudgets", reported, now=now)

    def _expected(self, budget: Json, pods: list[Json]) -> tuple[int, int]:
        """Return how many pods there should be, and how many of them healthy."""
        spec = budget["spec"]
        if spec.get("maxUnavailable") is not None:
            expected = self._wanted(pods)
            return expected, max(0, expected - scaled(spec["maxUnavailable"], expected, up=True))
        least = spec.get("minAvailable")
        if isinstance(least, str):
            expected = self._wanted(pods)
            return expected, scaled(least, expected, up=True)
        return len(pods), int(least) if least is not None else 0

    def _wanted(self, pods: Iterable[Json]) -> int:
        """Return what the controllers of these pods want together."""
        wanted: dict[str, int] = {}
        for pod in pods:
            controller = controller_of(pod)
            if controller is None or controller["uid"] in wanted:
                continue
            namespace = pod["metadata"]["namespace"]
            plural = _PLURALS.get(controller["kind"])
            found = self.store.get(plural, namespace, controller["name"]) if plural else None
            above = controller_of(found) if found is not None else None
            if above is not None and above["kind"] == "Deployment":
                found = self.store.get("deployments", namespace, above["name"])
            if found is not None:
                wanted[found["metadata"]["uid"]] = look(found, "spec", "replicas", default=0)
        return sum(wanted.values())

    def _disrupted(self, key: Key, budget: Json, pods: list[Json], now: datetime) -> Json:
        """Return the evictions that were granted and whose pods are not going yet."""
        granted = look(budget, "status", "disruptedPods", default={})
        left = {
            name: granted[name]
            for pod in pods
            if (name := pod["metadata"]["name"]) in granted
            and not is_deleting(pod)
            and moment(granted[name]) + _UNCONFIRMED > now
        }
        if left:
            soonest = min(moment(at) for at in left.values()) + _UNCONFIRMED
            self.state.timers.write(soonest, lambda _: self.note(key))
        return left
