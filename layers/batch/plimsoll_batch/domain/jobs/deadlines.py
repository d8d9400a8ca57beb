"""Which pods are told until when their gang runs: as an annotation, which a container reads through the downward API.

Told are all pods of a gang that asks for it, since a checkpoint is most often taken by all of them together.
https://kubernetes.io/docs/concepts/workloads/pods/downward-api/
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from plimsoll.domain.kubernetes import Node, Pod
from plimsoll_batch.domain.jobs.gangs import Gang
from plimsoll_batch.domain.jobs.job_actions import is_reclaimed
from plimsoll_batch.domain.jobs.jobs import GangJobs
from plimsoll_batch.domain.names import DEADLINE

MOST: Final = 500
"""Pods that one cycle tells, those with the earliest deadline first: the next cycle tells the others."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PodDeadline:
    """What is to be written on one pod."""

    pod: Pod
    gang: Gang
    deadline: str | None
    """None: no node of its gang is reclaimed any more."""


def plan_deadlines(
    gangs: Iterable[GangJobs], nodes: Iterable[Node], now: datetime
) -> Sequence[PodDeadline]:
    """Return what has to be written on pods now; what stands there already is not written again.

    Args:
        gangs: all of them.
        nodes: all of them.
        now: the present.
    """
    ends = {
        node.name: node.interruption.deadline
        for node in nodes
        if node.interruption is not None and is_reclaimed(node, now)
    }
    found = []
    for jobs in gangs:
        if not any(role.told for role in jobs.roles):
            continue
        first = min((at for pod in jobs.pods if (at := ends.get(pod.node or ""))), default=None)
        text = None if first is None else f"{first:%Y-%m-%dT%H:%M:%SZ}"
        found += [
            PodDeadline(pod=pod, gang=jobs.gang, deadline=text)
            for pod in jobs.pods
            if pod.deleting is None and pod.annotations.get(DEADLINE) != text
        ]
    found.sort(key=lambda each: each.deadline or "~")
    return found[:MOST]
