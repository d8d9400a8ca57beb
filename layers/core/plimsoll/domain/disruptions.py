"""Which nodes are interrupted, and which pods of which workloads must leave them."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import cached_property
from typing import Self

from plimsoll.domain.floors import budget_keeps, ready_floor
from plimsoll.domain.interruptions import Interruption
from plimsoll.domain.manual_drain import left_to_drain
from plimsoll.domain.names import IGNORE
from plimsoll.domain.node_rules import UNSCHEDULABLE, tolerated
from plimsoll.domain.nodes import Node
from plimsoll.domain.observation import Observation
from plimsoll.domain.pods import Pod, Ref
from plimsoll.domain.replace.disruption import EvictablePod, WorkloadDisruption
from plimsoll.domain.replace.eligibility import why_not_released
from plimsoll.domain.selectors import matches
from plimsoll.domain.workloads import Budget, Workload

_STAYS_PUT = {"DaemonSet", "Node"}
"""Owners whose pods belong to the node and end with it: daemons, and mirrors of static pods."""


@dataclass(frozen=True)
class InterruptedNodes:
    """The nodes with an open interruption. Not slotted: the set of names is kept."""

    nodes: tuple[Node, ...]

    @classmethod
    def of(cls, seen: Observation) -> Self:
        """Find them by the records that stand on the nodes themselves."""
        return cls(tuple(node for node in seen.nodes if _is_interrupted(node)))

    @cached_property
    def names(self) -> frozenset[str]:
        """Their names."""
        return frozenset(n.name for n in self.nodes)

    @cached_property
    def interruption(self) -> Mapping[str, Interruption]:
        """By the name of the node."""
        return {n.name: found for n in self.nodes if (found := n.interruption)}

    def nodes_of(self, disruption: WorkloadDisruption) -> frozenset[str]:
        """Return the interrupted nodes on which a disruption still has pods; all where none is left."""
        return frozenset(p.node for p in disruption.pods if p.node in self.names) or self.names


def _is_interrupted(node: Node) -> bool:
    return node.interruption is not None and node.interruption.phase != "closed"


def leaves(pod: Pod) -> bool:
    """Whether a pod has to leave an interrupted node, and counts until it has."""
    return not (pod.finished or pod.mirror or (pod.owner and pod.owner.kind in _STAYS_PUT))


def ignored(seen: Observation, pod: Pod) -> bool:
    """Whether its owner opted out, on the pod or on the workload."""
    owner = seen.owner(pod)
    workload = None if owner is None else seen.workload.get(owner)
    marked = [pod.labels, pod.annotations]
    if workload is not None:
        marked += [workload.labels, workload.annotations]
    return any(marks.get(IGNORE) == "true" for marks in marked)


def must_leave(seen: Observation, pod: Pod, node: Node) -> bool:
    """Whether a pod has to leave this node, which is interrupted, and is ours to move."""
    return leaves(pod) and not ignored(seen, pod) and not _chose(pod, node)


def _chose(pod: Pod, node: Node) -> bool:
    """Whether a pod came although its node was cordoned: it tolerates that, and would come again.

    Evicting it would send it in circles, once a second, until the instance goes.
    """
    cordoned = None if node.interruption is None else node.interruption.cordoned
    if cordoned is None or pod.created <= cordoned:
        return False
    return tolerated(UNSCHEDULABLE, pod.scheduling.tolerations)


def is_gone(seen: Observation, node: Node) -> bool:
    """Whether a node's instance is proven gone: by an event on record, or by EC2."""
    recorded = node.interruption is not None and node.interruption.gone is not None
    return recorded or node.instance in seen.gone


def disruptions_of(
    seen: Observation,
    interrupted: InterruptedNodes,
    now: datetime,
    refused: Mapping[Ref, str] | None = None,
) -> list[WorkloadDisruption]:
    """Return every workload with pods to move or on their way out, or released.

    Args:
        seen: the observation.
        interrupted: the nodes that go.
        now: the time of the observation.
        refused: Deployment -> why the API server refused the release of a pod of it.
    """
    found: dict[Ref, list[EvictablePod]] = defaultdict(list)
    for node in interrupted.nodes:
        interruption = interrupted.interruption[node.name]
        if interruption.withdrawn or is_gone(seen, node):
            continue  # nothing has to leave, or nothing can any more
        for pod in seen.on_node.get(node.name, ()):
            if not must_leave(seen, pod, node):
                continue
            moving = found[_ref(seen, pod)]
            if pod.deleting is None:
                moving.append(
                    EvictablePod(
                        pod=pod,
                        interruption=interruption.identity,
                        deadline=interruption.deadline,
                    )
                )
    for pod in seen.pods:
        if pod.released and pod.deleting is None and (owner := seen.owner(pod)) is not None:
            found.setdefault(owner, [])
    return [
        _disruption(seen, interrupted, ref, evictable, now, (refused or {}).get(ref))
        for ref, evictable in sorted(found.items())
    ]


def by_node(
    disruptions: Iterable[WorkloadDisruption],
) -> Mapping[str, Sequence[WorkloadDisruption]]:
    """Return the disruptions that have pods on a node, by its name."""
    found: dict[str, list[WorkloadDisruption]] = defaultdict(list)
    for disruption in disruptions:
        for name in {pod.node for pod in disruption.pods if pod.node is not None}:
            found[name].append(disruption)
    return found


def _ref(seen: Observation, pod: Pod) -> Ref:
    return seen.owner(pod) or Ref("Pod", pod.namespace, pod.name)


def _disruption(  # noqa: PLR0913, PLR0917 - what a disruption is made of, each part named
    seen: Observation,
    interrupted: InterruptedNodes,
    ref: Ref,
    evictable: list[EvictablePod],
    now: datetime,
    refused: str | None,
) -> WorkloadDisruption:
    workload = seen.workload.get(ref)
    pods = tuple(seen.of_workload.get(ref) or (d.pod for d in evictable))
    replicas = len(pods) if workload is None else workload.replicas
    budgets = _budgets(seen, ref, pods)
    return WorkloadDisruption(
        ref=ref,
        workload=workload,
        pods=pods,
        evictable=tuple(sorted(evictable, key=lambda d: d.pod.name)),
        on_interrupted_nodes=frozenset(p.uid for p in pods if p.node in interrupted.names),
        dead=frozenset(p.uid for p in pods if _dead(seen, p)),
        replicas=replicas,
        floor=_floor(ref, workload, budgets, replicas),
        budgets=budgets,
        not_releasable={
            one.pod.uid: why
            for one in evictable
            if not one.pod.released
            and (why := refused or why_not_released(seen, workload, one.pod))
        },
        left_to_drain=frozenset(p.uid for p in pods if left_to_drain(seen, p)),
        current=seen.current.get(ref),
        now=now,
    )


def _dead(seen: Observation, pod: Pod) -> bool:
    """Whether a pod ended with its node, whatever the API server still says of it."""
    if pod.node is None:
        return False
    node = seen.node.get(pod.node)
    return node is None or is_gone(seen, node)


def _budgets(seen: Observation, ref: Ref, pods: tuple[Pod, ...]) -> tuple[Budget, ...]:
    labels = pods[0].labels if pods else {}
    return tuple(
        budget
        for budget in seen.budgets
        if budget.ref.namespace == ref.namespace and matches(budget.selector, labels)
    )


def _floor(ref: Ref, workload: Workload | None, budgets: tuple[Budget, ...], replicas: int) -> int:
    keeps = max(
        (
            budget_keeps(
                replicas,
                min_available=budget.min_available,
                max_unavailable=budget.max_unavailable,
            )
            for budget in budgets
        ),
        default=0,
    )
    if workload is None:
        # How many its controller wants is not known: what there is must do, but for one.
        alone = ref.kind in {"Pod", "Job"}
        return min(keeps if alone else max(keeps, replicas - 1), replicas)
    return ready_floor(
        ref.kind,
        replicas,
        workload.strategy,
        workload.max_unavailable,
        keeps,
        max_surge=workload.max_surge,
    )
