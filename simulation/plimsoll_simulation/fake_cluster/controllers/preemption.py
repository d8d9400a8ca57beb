"""Preemption: which pods go so that one of higher priority finds room.

On each node all pods of lower priority are taken off in thought. If the waiting pod fits then, they
are spared one by one, those whose budget would be broken first and the more important before the
less, as long as it still fits: who cannot be spared is a victim. The node that costs least wins.

Sources: k8s.io/kubernetes/pkg/scheduler/framework/plugins/defaultpreemption/default_preemption.go
(SelectVictimsOnNode, filterPodsWithPDBViolation), pkg/scheduler/framework/preemption/preemption.go
(pickOneNodeForPreemption), pkg/scheduler/util (MoreImportantPod);
https://kubernetes.io/docs/concepts/scheduling-eviction/pod-priority-preemption/
The surprise: a budget is broken where nothing else helps; it only makes a node dearer.
Left out: every node is looked at, where the scheduler stops at a tenth of them (at least 100).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime

from plimsoll.adapters.kubernetes.objects import parse_selector
from plimsoll.domain.kubernetes import Node, Pod, matches, why_never
from plimsoll.domain.scheduling import ClusterSnapshot
from plimsoll_simulation.fake_cluster.edits import Json, look
from plimsoll_simulation.fake_cluster.stamps import moment
from plimsoll_simulation.fake_cluster.store import Store

type Started = Callable[[Pod], datetime]

_OFFSET = 2**31
"""Added to each priority of a sum, so that more victims below zero never make it smaller."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PreemptionCandidate:
    """What it costs to let a pod in on one node."""

    node: str
    victims: tuple[Pod, ...]
    """Most important first."""
    violations: int
    """How many of them their budget would not give."""


def cheapest(
    snapshot: ClusterSnapshot, pod: Pod, budgets: Sequence[Json], started: Started
) -> PreemptionCandidate | None:
    """Return what to sacrifice for a pod that fits nowhere; None where nothing would help.

    The board is as it was when this returns.
    """
    nodes = (n for n in snapshot.nodes.values() if why_never(pod.scheduling, n) is None)
    found = (on_node(snapshot, pod, node, budgets, started) for node in nodes)
    return min(
        (each for each in found if each is not None), key=lambda s: _cost(s, started), default=None
    )


def on_node(
    snapshot: ClusterSnapshot, pod: Pod, node: Node, budgets: Sequence[Json], started: Started
) -> PreemptionCandidate | None:
    """Return the fewest that must leave a node; None where even all of them are not enough."""
    lower = [p for p in snapshot.on(node.name) if p.priority < pod.priority]
    if not lower:
        return None
    for each in lower:
        snapshot.remove(each)
    try:
        if snapshot.why_not(pod, node) is not None:
            return None
        lower.sort(key=lambda p: (-p.priority, started(p)))
        guarded = _violating(lower, budgets)
        victims = []
        for each in sorted(lower, key=lambda p: p.uid not in guarded):
            snapshot.place(each, node.name)
            if snapshot.why_not(pod, node) is not None:
                snapshot.remove(each)
                victims.append(each)
    finally:
        for each in lower:
            snapshot.place(each, node.name)
    violations = sum(1 for each in victims if each.uid in guarded)
    victims.sort(key=lambda p: (-p.priority, started(p)))
    return PreemptionCandidate(node=node.name, victims=tuple(victims), violations=violations)


def starts(store: Store, now: datetime) -> Started:
    """Return how to learn when a pod was started: one that was not counts as started now."""

    def started(pod: Pod) -> datetime:
        obj = store.get("pods", pod.namespace, pod.name)
        since = look(obj or {}, "status", "startTime")
        return moment(since) if since else now

    return started


def _cost(sacrifice: PreemptionCandidate, started: Started) -> tuple[float, ...]:
    victims = sacrifice.victims
    if not victims:
        return (0, float("-inf"))
    highest = victims[0].priority
    earliest = min(started(pod) for pod in victims if pod.priority == highest)
    return (
        sacrifice.violations,
        highest,
        sum(pod.priority + _OFFSET for pod in victims),
        len(victims),
        -earliest.timestamp(),
    )


def _violating(pods: Iterable[Pod], budgets: Sequence[Json]) -> set[str]:
    """Return the UIDs of those that their budgets would not give, asked in this order."""
    rules = [
        (
            budget["metadata"]["namespace"],
            parse_selector(look(budget, "spec", "selector")),
            look(budget, "status", "disruptedPods", default={}),
        )
        for budget in budgets
    ]
    left = [look(budget, "status", "disruptionsAllowed", default=0) for budget in budgets]
    found = set()
    for pod in pods:
        for number, (namespace, selector, disrupted) in enumerate(rules):
            if namespace != pod.namespace or pod.name in disrupted:
                continue
            if matches(selector, pod.labels):
                left[number] -= 1
                if left[number] < 0:
                    found.add(pod.uid)
    return found
