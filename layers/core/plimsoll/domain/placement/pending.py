"""Pods that the spread groups alone keep Pending.

Whether a group can hold its share is an estimate. A pod that waits in vain, though a node would take
it, is the proof that it was wrong: then the groups follow that pod until it has its place.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Final

from plimsoll.domain.kubernetes import SPREAD_PREFIX, Node, NodeTerm, Pod, Ref, Scheduling, Workload
from plimsoll.domain.observation import Observation
from plimsoll.domain.scheduling import ClusterSnapshot

WAITED: Final = timedelta(seconds=30)
"""How long a pod is Pending before the groups that have no place for it are closed."""
TRIED_PENDING_WORKLOADS: Final = 50
"""For how many workloads with such a pod one plan looks where it fits: each look is at all nodes."""


def waited(pod: Pod, now: datetime) -> bool:
    """Whether a pod has been Pending for so long that the groups are judged by what it needs."""
    return pod.pending and pod.created + WAITED < now


def keeps_spread_groups(node: Node) -> bool:
    """Whether a node has a spread label: then pods may wait for a place in its group."""
    return any(key.startswith(SPREAD_PREFIX) for key in node.labels)


def waits_for_spread_group(pod: Pod, now: datetime) -> bool:
    """Whether a pod that names a spread label has been Pending for long."""
    return waited(pod, now) and without_spread_groups(pod.scheduling) != pod.scheduling


def places_of_waiting(
    seen: Observation, workloads: Sequence[Workload], now: datetime
) -> frozenset[str]:
    """Return the nodes that would take the pod that waited longest, were it not spread by us.

    A pod that no node takes is passed over. Empty: the groups keep no pod Pending.
    """
    first: dict[Ref, Pod] = {}
    for pod in seen.pending:
        if waits_for_spread_group(pod, now):
            first.setdefault(seen.workload_of(pod), pod)
    waiting = [first[workload.ref] for workload in workloads if workload.ref in first]
    if not waiting:
        return frozenset()
    snapshot = ClusterSnapshot(seen.nodes, seen.bound, seen.claims)
    for pod in sorted(waiting, key=lambda p: (p.created, p.uid))[:TRIED_PENDING_WORKLOADS]:
        unspread = replace(pod, scheduling=without_spread_groups(pod.scheduling))
        if places := frozenset(node.name for node in snapshot.candidates(unspread)):
            return places
    return frozenset()


def without_spread_groups(scheduling: Scheduling) -> Scheduling:
    """Return where a pod may run but for the spread labels: constraints and node affinity over them."""

    def kept(term: NodeTerm) -> NodeTerm:
        others = tuple(e for e in term.expressions if not e.key.startswith(SPREAD_PREFIX))
        return replace(term, expressions=others)

    terms = tuple(kept(term) for term in scheduling.node_terms or ())
    return replace(
        scheduling,
        spread=tuple(c for c in scheduling.spread if not c.topology_key.startswith(SPREAD_PREFIX)),
        # A term without any expression matches no node.
        node_terms=terms if all(t.expressions or t.fields for t in terms) and terms else None,
    )
