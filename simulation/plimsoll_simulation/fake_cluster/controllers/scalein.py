"""Which pods go first when a ReplicaSet has too many.

The order is the real one, criterion by criterion: unassigned, Pending, not Ready, lower
`pod-deletion-cost`, more pods of the set on the same node, Ready for less time, more restarts,
younger. The surprises: the deletion cost is only the fourth, and times are compared by the power
of two of the age in nanoseconds; equal ones fall back on the UID.

Source: k8s.io/kubernetes/pkg/controller/controller_utils.go, ActivePodsWithRanks (1.36);
https://kubernetes.io/docs/concepts/workloads/controllers/replicaset/#scaling-down-a-replicaset
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import cmp_to_key
from math import log2

from plimsoll.domain.kubernetes import DELETION_COST
from plimsoll_simulation.fake_cluster.conditions import condition
from plimsoll_simulation.fake_cluster.edits import Json, look
from plimsoll_simulation.fake_cluster.stamps import moment

_PHASES = {"Pending": 0, "Unknown": 1, "Running": 2}


@dataclass(frozen=True, slots=True, kw_only=True)
class _Standing:
    """What the order looks at."""

    pod: Json
    uid: str
    assigned: bool
    phase: int
    ready: bool
    cost: int
    colocated: int
    ready_since: datetime | None
    restarts: int
    created: datetime


def first_to_go(
    pods: Sequence[Json], related: Iterable[Json], count: int, now: datetime
) -> list[Json]:
    """Return the pods to delete.

    Args:
        pods: the active pods of the ReplicaSet.
        related: the active pods of all ReplicaSets of the same owner, which count as colocated; a
            set without an owner has none.
        count: how many must go.
        now: for the age of pods.
    """
    on_node = Counter(look(pod, "spec", "nodeName", default="") for pod in related)
    standing = [_standing(pod, on_node) for pod in pods]
    standing.sort(key=cmp_to_key(lambda a, b: _compare(a, b, now)))
    return [s.pod for s in standing[:count]]


def _standing(pod: Json, on_node: Counter[str]) -> _Standing:
    node, ready = look(pod, "spec", "nodeName", default=""), condition(pod, "Ready")
    is_ready = ready is not None and ready["status"] == "True"
    containers = look(pod, "status", "containerStatuses", default=())
    return _Standing(
        pod=pod,
        uid=pod["metadata"]["uid"],
        assigned=bool(node),
        phase=_PHASES.get(look(pod, "status", "phase", default=""), 0),
        ready=is_ready,
        cost=_cost(look(pod, "metadata", "annotations", default={}).get(DELETION_COST, "0")),
        colocated=on_node[node],
        ready_since=moment(ready["lastTransitionTime"]) if is_ready and ready else None,
        restarts=max((c.get("restartCount", 0) for c in containers), default=0),
        created=moment(pod["metadata"]["creationTimestamp"]),
    )


def _cost(text: str) -> int:
    try:
        return int(text)
    except ValueError:
        return 0


def _compare(a: _Standing, b: _Standing, now: datetime) -> int:
    for mine, other in (
        (a.assigned, b.assigned),
        (a.phase, b.phase),
        (a.ready, b.ready),
        (a.cost, b.cost),
        (-a.colocated, -b.colocated),
    ):
        if mine != other:
            return -1 if mine < other else 1
    if a.ready_since and b.ready_since and a.ready_since != b.ready_since:
        return _by_age(a.ready_since, b.ready_since, a, b, now)
    if a.restarts != b.restarts:
        return -1 if a.restarts > b.restarts else 1
    if a.created != b.created:
        return _by_age(a.created, b.created, a, b, now)
    return 0


def _by_age(mine: datetime, other: datetime, a: _Standing, b: _Standing, now: datetime) -> int:
    difference = _magnitude(now - mine) - _magnitude(now - other)
    if difference == 0:
        return -1 if a.uid < b.uid else 1
    return difference


def _magnitude(age: timedelta) -> int:
    nanoseconds = age // timedelta(microseconds=1) * 1000
    return int(log2(nanoseconds)) if nanoseconds > 0 else -1
