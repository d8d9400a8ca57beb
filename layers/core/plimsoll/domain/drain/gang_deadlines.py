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
    MOST_TOLD,
    Pod,
    Ref,
    class_of,
    deadline_text,
    gang_of,
    pods_to_tell,
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
    found: list[tuple[tuple[str, int], TellDeadline]] = []
    for gang, pods in gangs.items():
        end = going.get(gang)
        if end is None and any(pod.node in leave for pod in pods):
            continue
        text, reason = None, "no node of its gang goes any more"
        if end is not None:
            text, reason = deadline_text(end), f"a node of {gang} goes then"
        times = seen.times.get(class_of(gang))
        told = pods_to_tell(
            pods,
            end,
            now,
            stated=max(pod.checkpoint_seconds or 0 for pod in pods),
            observed=None if times is None else times.checkpoint_seconds,
        )
        news = [
            TellDeadline(pod=pod, deadline=text, reason=reason)
            for pod in told
            if not pod.finished and why_opted_out(seen, pod) is None
        ]
        found += [((text or "~", len(news)), one) for one in news]
    found.sort(key=lambda each: each[0])  # of one deadline, small gangs before large ones
    return [one for _, one in found[:MOST_TOLD]]
