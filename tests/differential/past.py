"""What happened on the way from one rest to the next, as a watch shows it.

For the pods of each Deployment: the fewest that were serving and the most that there were at any
time, which maxUnavailable and maxSurge bound. For StatefulSets with ordered pods: who was made and
who was told to go, one after the other.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from plimsoll.hollow.conditions import controller_of, is_active, is_deleting, is_ready
from plimsoll.hollow.edits import Json
from tests.differential.sides import Seen

_HASH = "pod-template-hash"


def maker(pod: Json, sets: Mapping[str, Json]) -> tuple[str | None, str]:
    """Return kind and name of what made a pod: of the Deployment, not of its ReplicaSet."""
    owner = controller_of(pod)
    if owner is None:
        return None, pod["metadata"]["name"]
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

    def look(self, changes: Sequence[Seen], sets: Mapping[str, Json]) -> dict[str, Any]:
        """Return extremes and orders."""
        pods = dict(self._pods)
        orders: dict[str, list[str]] = {}
        least, most = _counts(pods, sets), _counts(pods, sets)
        for seen in changes:
            if seen.resource != "pods":
                continue
            self._follow(seen, pods, orders)
            for name, (serving, there) in _counts(pods, sets).items():
                before = least.get(name, (0, 0))
                least[name] = (min(before[0], serving), 0)
                most[name] = (0, max(most.get(name, (0, 0))[1], there))
        self._now = pods
        return {
            **{f"order of {name}": order for name, order in orders.items()},
            **{f"fewest serving of {name}": counts[0] for name, counts in least.items()},
            **{f"most of {name}": counts[1] for name, counts in most.items()},
        }

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
        elif before is not None and not is_deleting(before):
            if is_deleting(pod) or seen.type == "DELETED":
                order.append(f"-{ordinal}")


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
