"""What happened on the way from one rest to the next, as a watch shows it.

For the pods of each Deployment: whether those that served were ever fewer than maxUnavailable
allows, and all together more than maxSurge does. Two controllers write side by side, and who is
first by a little is chance on the real side and order of work on the fake one: so a count must
have lasted. For StatefulSets with ordered pods: who was made and
who was told to go, one after the other.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from plimsoll_simulation.fake_cluster.conditions import (
    controller_of,
    is_active,
    is_deleting,
    is_ready,
)
from plimsoll_simulation.fake_cluster.controllers.rollouts import bounds_of
from plimsoll_simulation.fake_cluster.edits import Json
from tests.differential.sides import Seen

_HASH = "pod-template-hash"


def maker(pod: Json, sets: Mapping[str, Json]) -> tuple[str | None, str]:
    """Return kind and name of what made a pod: of the Deployment, not of its ReplicaSet."""
    owner = controller_of(pod)
    if owner is None:
        made = pod["metadata"].get("generateName")
        return ("nobody", made) if made else (None, pod["metadata"]["name"])
    above = controller_of(sets[owner["uid"]]) if owner["uid"] in sets else None
    if above is not None:
        owner = above
    if owner["kind"] == "ReplicaSet" and _HASH in (pod["metadata"].get("labels") or {}):
        return "Deployment", owner["name"].rpartition("-")[0]
    return owner["kind"], owner["name"]


class Past:
    """The pods of a scenario as its last step left them."""

    def __init__(self, ordered: frozenset[str]) -> None:
        self._ordered = ordered
        self._pods: dict[str, Json] = {}
        self._now: dict[str, Json] = {}

    def keep(self) -> None:
        """Hold what the last look found for the next ones to begin with."""
        self._pods = self._now

    def look(
        self,
        changes: Sequence[Seen],
        sets: Mapping[str, Json],
        deployments: Sequence[Json],
        instant: float,
    ) -> dict[str, Any]:
        """Return whether each Deployment kept its bounds, and the orders of ordered sets.

        Args:
            changes: what was seen since the last step.
            sets: the ReplicaSets by UID.
            deployments: as they are now.
            instant: seconds for which a count must last to be counted.
        """
        pods = dict(self._pods)
        orders: dict[str, list[str]] = {}
        extremes = _Extremes(_counts(pods, sets), instant)
        for seen in changes:
            if seen.resource == "deployments" and seen.type != "DELETED":
                extremes.bound(seen.object)
            if seen.resource != "pods":
                continue
            self._follow(seen, pods, orders)
            extremes.add(_counts(pods, sets), seen.at)
        self._now = pods
        for deployment in deployments:
            extremes.bound(deployment)
        return {f"order of {name}": order for name, order in orders.items()} | extremes.told()

    def _follow(self, seen: Seen, pods: dict[str, Json], orders: dict[str, list[str]]) -> None:
        pod = seen.object
        uid = pod["metadata"]["uid"]
        before = pods.get(uid)
        if seen.type == "DELETED":
            pods.pop(uid, None)
        else:
            pods[uid] = pod
        owner = controller_of(pod)
        if owner is None or owner["kind"] != "StatefulSet" or owner["name"] not in self._ordered:
            return
        order = orders.setdefault(owner["name"], [])
        ordinal = pod["metadata"]["name"].rpartition("-")[2]
        if before is None and seen.type != "DELETED":
            order.append(f"+{ordinal}")
        elif before is not None and not is_deleting(before) and _goes(seen):
            order.append(f"-{ordinal}")


def _goes(seen: Seen) -> bool:
    return is_deleting(seen.object) or seen.type == "DELETED"


def _counts(pods: Mapping[str, Json], sets: Mapping[str, Json]) -> dict[str, tuple[int, int]]:
    """Return for each Deployment how many of its pods serve, and how many there are."""
    serving: Counter[str] = Counter()
    there: Counter[str] = Counter()
    for pod in pods.values():
        kind, name = maker(pod, sets)
        if kind == "Deployment" and is_active(pod):
            there[name] += 1
            serving[name] += is_ready(pod)
    return {name: (serving[name], count) for name, count in there.items()}


class _Lasting:
    """A count, and whether it was ever lower for longer than an instant; for higher ones negate."""

    def __init__(self, count: int, instant: float) -> None:
        self._instant = instant
        self._count, self._since = count, float("-inf")
        self._least: int | None = None

    def add(self, count: int, at: float) -> None:
        """Take in what holds from a moment on; saying the same again changes nothing."""
        if count == self._count:
            return
        if at - self._since > self._instant:
            self._least = self.least
        self._count, self._since = count, at

    @property
    def least(self) -> int:
        """The lowest that lasted, what holds now included."""
        return self._count if self._least is None else min(self._least, self._count)


class _Extremes:
    """The fewest that served and the most that there were, against what was allowed."""

    def __init__(self, first: Mapping[str, tuple[int, int]], instant: float) -> None:
        self._first = first
        self._instant = instant
        self._serving: dict[str, _Lasting] = {}
        self._missing: dict[str, _Lasting] = {}
        self._allowed: dict[str, tuple[int, int]] = {}
        self.add(first, float("-inf"))

    def bound(self, deployment: Json) -> None:
        """Widen what is allowed to what a state of a Deployment allows."""
        name, bounds = deployment["metadata"]["name"], bounds_of(deployment)
        least, most = self._allowed.get(name, (bounds.least, bounds.most))
        self._allowed[name] = min(least, bounds.least), max(most, bounds.most)

    def add(self, counts: Mapping[str, tuple[int, int]], at: float) -> None:
        """Take in what holds from a moment on."""
        for name in counts.keys() | self._serving.keys():
            serving, there = counts.get(name, (0, 0))
            for kept, count in ((self._serving, serving), (self._missing, -there)):
                kept.setdefault(name, _Lasting(count, self._instant)).add(count, at)

    def told(self) -> dict[str, Any]:
        """Return a verdict for each Deployment."""
        told = {}
        for name, (least, most) in self._allowed.items():
            serving, there = self._first.get(name, (0, 0))
            fewest = self._serving[name].least if name in self._serving else 0
            most_there = -self._missing[name].least if name in self._missing else 0
            told[f"Deployment {name} had enough that served"] = fewest >= min(least, serving)
            told[f"Deployment {name} had no more than it may"] = most_there <= max(most, there)
        return told
