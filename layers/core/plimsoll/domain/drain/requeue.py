"""What is under way in a drain: whether another observation within seconds carries it on."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime

from plimsoll.domain.disruptions import PATIENCE, WorkloadDisruption, left_on, left_to_pod_gc
from plimsoll.domain.interruptions import NEAR
from plimsoll.domain.observation import InterruptedNodes, Observation, is_gone


def under_way(
    seen: Observation,
    disruptions: Iterable[WorkloadDisruption],
    interrupted: InterruptedNodes,
    now: datetime,
) -> bool:
    """Whether a deadline presses, or pods stop or start whose state the next step waits for."""
    gone = (node for node in interrupted.nodes if is_gone(seen, node))
    if any(
        n.ready or not (pod.held_by_finalizers or left_to_pod_gc(n, pod, now))
        for n in gone
        for pod in left_on(seen, n)
    ):
        return True
    if any(
        i.deadline and abs(i.deadline - now) < NEAR and i.phase == "open"
        for i in interrupted.interruption.values()
    ):
        return True
    return any(_in_motion(disruption, now) for disruption in disruptions)


def _in_motion(disruption: WorkloadDisruption, now: datetime) -> bool:
    """Whether pods of a workload stop, start or are about to be made; what takes long is left out."""
    return (
        any(now - PATIENCE < p.deleting for p in disruption.leaving if p.deleting)
        or any(
            p.uid not in disruption.steady and now - p.created < PATIENCE
            for p in disruption.staying
        )
        or bool(disruption.released and disruption.missing)
        or disruption.uncounted
    )
