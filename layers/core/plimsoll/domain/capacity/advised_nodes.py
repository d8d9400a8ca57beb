"""Nodes that were cordoned on advice. It may never come true, and pods that would fit there wait because of it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from datetime import datetime

from plimsoll.domain.kubernetes import INTERRUPTION, UNSCHEDULABLE, Node, Pod
from plimsoll.domain.observation import Observation
from plimsoll.domain.scheduling import ClusterSnapshot


def kept_out(
    seen: Observation, pods: Iterable[Pod], snapshot: ClusterSnapshot, now: datetime
) -> Iterator[tuple[Pod, Node]]:
    """Yield the pods without a place that a node left on advice would take, each with that node.

    Not one that was cordoned before, or whose instance is gone. Where the owner has such instances replaced, it is too late.
    """
    ends = {instance for group in seen.groups if group.renew for instance in group.instances}
    left = {
        node.name: node
        for node in seen.nodes
        if (found := node.interruption) is not None
        and found.cordoned is not None
        and not (found.unschedulable_before or found.gone or node.instance in ends)
        and found.on_advice(now)
    }
    trial = snapshot.copy() if left else snapshot
    ours = {INTERRUPTION, UNSCHEDULABLE.key}
    for node in left.values():
        taints = tuple(taint for taint in node.taints if taint.key not in ours)
        trial.add_node(replace(node, unschedulable=False, taints=taints))
    for pod in pods if left else ():
        place = trial.choose(pod)
        if place is not None and place.name in left:
            yield pod, left[place.name]
