"""All pods of a gang are told when the first of their nodes goes: most often they write one checkpoint together."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Sequence
from datetime import datetime

from plimsoll.domain.actions import Step, TellDeadline, Uncordon
from plimsoll.domain.disruptions import WorkloadDisruption, why_opted_out
from plimsoll.domain.interruptions import is_near
from plimsoll.domain.kubernetes import (
    DEADLINE,
    Pod,
    Ref,
    ThreatenedGang,
    class_of,
    deadlines_to_tell,
    gang_of,
)
from plimsoll.domain.observation import Observation


def gang_deadlines(
    seen: Observation,
    interrupted: Collection[str],
    disruptions: Iterable[WorkloadDisruption],
    steps: Iterable[Step],
    now: datetime,
) -> Sequence[TellDeadline]:
    """Return what has to be written on pods of gangs outside our queues; what stands there is not written again.

    The annotation is taken off once no pod of a gang stands on an interrupted node any more.

    Args:
        seen: the observation.
        interrupted: names of the interrupted nodes.
        disruptions: the workloads with pods on them.
        steps: the plan so far, which may uncordon some of these nodes.
        now: the time of the observation.
    """
    going: dict[Ref, datetime] = {}
    for one in (one for disruption in disruptions for one in disruption.evictable):
        if one.deadline is not None and is_near(one.deadline, now):
            gang = gang_of(one.pod)
            if gang is not None:
                going[gang] = min(going.get(gang, one.deadline), one.deadline)
    namespaces = {gang.namespace for gang in going}
    gangs: dict[Ref, list[Pod]] = defaultdict(list)
    for pod in seen.pods:
        if pod.namespace in namespaces or DEADLINE in pod.annotations:
            gang = gang_of(pod)
            if gang is not None:
                gangs[gang].append(pod)
    stay = {name for step in steps if isinstance(step.action, Uncordon) for name in step.nodes}
    leave = {name for name in interrupted if name not in stay}
    threatened = [
        _threatened(seen, gang, pods, going.get(gang))
        for gang, pods in gangs.items()
        # A gang without a near deadline that stands on a node which goes keeps what is written on it.
        if gang in going or leave.isdisjoint(pod.node or "" for pod in pods)
    ]
    told = deadlines_to_tell(
        threatened,
        now,
        opted_out=lambda pod: pod.finished or why_opted_out(seen, pod) is not None,
    )
    return [
        TellDeadline(
            pod=one.pod,
            deadline=one.deadline,
            reason="no node of its gang goes any more"
            if one.deadline is None
            else f"a node of {one.gang} goes then",
        )
        for one in told
    ]


def _threatened(
    seen: Observation, gang: Ref, pods: Sequence[Pod], deadline: datetime | None
) -> ThreatenedGang[Ref]:
    times = seen.times.get(class_of(gang))
    return ThreatenedGang(
        gang=gang,
        pods=pods,
        deadline=deadline,
        stated=max(pod.checkpoint_seconds or 0 for pod in pods),
        observed=None if times is None else times.checkpoint_seconds,
    )
