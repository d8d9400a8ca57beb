"""What a zonal shift means for a cluster: capacity is frozen in its zone, and pods leave it by release.

A zone may be impaired and still run what stands in it, so nothing there is evicted, cordoned or forced.
Its nodes bear a taint that kube-scheduler heeds where others fit (PreferNoSchedule). A pod whose volume,
affinity or spread holds it in the zone keeps its place, and may come back to it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime
from typing import Final

from plimsoll.domain.interruptions import ADVICE, HOUR, Response
from plimsoll.domain.kubernetes import (
    RELEASED,
    ZONAL_SHIFT,
    ZONE,
    Node,
    NodeTerm,
    Pod,
    Requirement,
    Scheduling,
)
from plimsoll.domain.notices import ZonalShift
from plimsoll.domain.observation import Observation, why_drained

LEAVING: Final = ZonalShift.kind
"""In the place of an interruption, on a pod that is released to leave a zone."""


def frozen_zones(seen: Observation) -> frozenset[str]:
    """Return the zones in which capacity is asked for as last resort only."""
    ignored = not seen.policy.of_kind(LEAVING).writes
    return frozenset(() if ignored else seen.shifts or ())


def has_shift_taint(node: Node) -> bool:
    """Whether a node bears the taint of a zonal shift."""
    return any(taint.key == ZONAL_SHIFT for taint in node.taints)


def emptied_nodes(seen: Observation, now: datetime) -> Mapping[str, datetime]:
    """Return the nodes whose pods leave their zone by now, and since when it is shifted.

    As many in an hour as on advice. None while the taints do not stand everywhere in the zone, or while
    a node has a deadline: what moves for a shift has time.
    """
    if seen.policy.of_kind(LEAVING) is not Response.MOVE or any(map(_hurried, seen.nodes)):
        return {}
    found: dict[str, datetime] = {}
    for zone, shift in sorted((seen.shifts or {}).items()):
        there = sorted((n for n in seen.nodes if n.zone == zone), key=lambda n: n.name)
        if shift.practice or not all(map(has_shift_taint, there)):
            continue
        hours = 1 + max(0, (now - shift.since) // HOUR)
        turn = there[: seen.policy.budget(len(seen.nodes)) * hours]
        found |= {
            node.name: shift.since
            for node in turn
            if node.interruption is None and why_drained(node, seen.policy) is None
        }
    return found


def _hurried(node: Node) -> bool:
    found = node.interruption
    return (
        found is not None
        and found.deadline is not None
        and found.phase == "open"
        and any(notice.kind not in ADVICE for notice in found.standing)
    )


def left_for_zone(pod: Pod) -> bool:
    """Whether a pod was released to leave a zone."""
    return pod.released and pod.annotations[RELEASED] == LEAVING


def elsewhere(pod: Pod, zone: str, known: dict[int, Scheduling]) -> Pod:
    """Return a pod as its replacement is planned: in any zone but this one.

    Its spread counts the zone all the same, as kube-scheduler will. So it counts nodes too that the pod's own
    affinity leaves out: then it stays where it is rather than go where it may not be placed.

    Args:
        pod: one that leaves the zone.
        zone: the zone, by name.
        known: the schedulings of pods that were changed before, by identity: templates stay shared.
    """
    before = pod.scheduling
    if id(before) not in known:
        away = Requirement(key=ZONE, operator="NotIn", values=(zone,))
        terms = (NodeTerm(),) if before.node_terms is None else before.node_terms
        known[id(before)] = replace(
            before,
            node_terms=tuple(
                replace(term, expressions=(*term.expressions, away))
                for term in terms
                if before.node_terms is None or term.expressions or term.fields
            ),
            spread=tuple(replace(each, node_affinity_policy="Ignore") for each in before.spread),
        )
    return replace(pod, scheduling=known[id(before)])
