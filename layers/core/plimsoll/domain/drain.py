"""The plan of a cluster: all its interruptions as one.

`plan_drain` is pure: what was seen and the time go in, actions with reasons come out. It is level
triggered. It knows nothing of earlier plans, so it may be asked twice, late, or by two at once.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime

from plimsoll.domain.actions import Action, Evict
from plimsoll.domain.disruptions import InterruptedNodes, by_node, disruptions_of
from plimsoll.domain.finalize import finalize_steps, opted_out_on, report_of
from plimsoll.domain.observation import Observation
from plimsoll.domain.plan import Plan, Step
from plimsoll.domain.pods import Ref
from plimsoll.domain.replace import EvictablePod, Headroom, WorkloadDisruption, way_of
from plimsoll.domain.replace.disruption import NEAR
from plimsoll.domain.replace.release import PATIENCE
from plimsoll.domain.scale_up import plan_scale_up
from plimsoll.domain.snapshot import headroom_for


def plan_drain(
    seen: Observation,
    now: datetime,
    *,
    avoid: Mapping[tuple[str, str | None], datetime] | None = None,
    refused: Mapping[Ref, str] | None = None,
) -> Plan:
    """Decide what to do now about every interrupted node of a cluster.

    Args:
        seen: one observation of the cluster and its node groups.
        now: the time of the observation.
        avoid: (node group, zone or None for all) -> until when it is not asked, because it refused.
        refused: Deployment -> why the API server refused to release a pod of it, in words.
    """
    interrupted = InterruptedNodes.of(seen)
    disruptions = disruptions_of(seen, interrupted, now, refused)
    draft = _Draft(seen=seen, interrupted=interrupted)
    headroom = headroom_for(seen, interrupted)
    scale_up = plan_scale_up(
        seen, interrupted, disruptions, headroom.snapshot, avoid=avoid or {}, now=now
    )
    headroom.unplaceable = scale_up.unplaceable
    for grow in scale_up.grows:
        draft.add(grow, interrupted.names)
    for words in scale_up.given_up:
        draft.wait(words, interrupted.names)
    for disruption in disruptions:
        if not way_of(disruption)[0].surges:
            for pod in disruption.owed:
                headroom.reserve(pod)
    for disruption in disruptions:
        _plan_late(disruption, draft, headroom, now)
    for disruption in sorted(disruptions, key=_urgency):
        _plan_moves(_without_late(disruption, now), draft, headroom)
    _plan_endings(draft, now)
    here = by_node(disruptions)
    steps = sorted(draft.steps, key=lambda step: step.action.wave)
    return Plan(
        steps=tuple(steps),
        waiting={node: tuple(texts) for node, texts in sorted(draft.waiting.items())},
        reports=tuple(
            report_of(
                seen,
                node,
                here.get(node.name, ()),
                draft.told(node.name),
                asked=bool(scale_up.grows),
                now=now,
            )
            for node in interrupted.nodes
        ),
        busy=bool(steps) or _under_way(disruptions, interrupted, now),
        next_call=min(
            (start for start in _latest_starts(disruptions) if start > now), default=None
        ),
    )


@dataclass(slots=True)
class _Draft:
    """A plan in the making."""

    seen: Observation
    interrupted: InterruptedNodes
    steps: list[Step] = field(default_factory=list)
    waiting: dict[str, list[str]] = field(default_factory=lambda: defaultdict(list))

    def add(self, action: Action, nodes: Iterable[str]) -> None:
        self.steps.append(Step(action=action, nodes=frozenset(nodes)))

    def wait(self, text: str, nodes: Iterable[str]) -> None:
        for node in nodes:
            self.waiting[node].append(text)

    def told(self, node: str) -> Iterator[str]:
        yield from (str(step) for step in self.steps if node in step.nodes)
        yield from (f"wait: {words}" for words in self.waiting.get(node, ()))


def _urgency(disruption: WorkloadDisruption) -> tuple[bool, bool, int, int, str]:
    """Who would be below its floor, or at zero, chooses first; then who cannot run twice."""
    way, _ = way_of(disruption)
    spare = disruption.staying_ready - max(disruption.floor, min(1, disruption.replicas))
    priority = max((d.pod.priority for d in disruption.evictable), default=0)
    return spare >= 0, way.surges, spare, -priority, str(disruption.ref)


def _latest_starts(disruptions: Iterable[WorkloadDisruption]) -> Iterator[datetime]:
    for disruption in disruptions:
        for one in disruption.evictable:
            if one.latest_start is not None:
                yield one.latest_start


def _under_way(
    disruptions: Iterable[WorkloadDisruption], interrupted: InterruptedNodes, now: datetime
) -> bool:
    """Whether a deadline presses, or pods stop or start whose state the next step waits for."""
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
        or any(not p.ready and now - p.created < PATIENCE for p in disruption.staying)
        or bool(disruption.released and disruption.missing)
    )


def _without_late(disruption: WorkloadDisruption, now: datetime) -> WorkloadDisruption:
    """Return a disruption without the pods that are asked to stop in this plan: they serve no longer."""
    late = {d.pod.uid for d in disruption.evictable if d.late(now)}
    return replace(
        disruption,
        evictable=tuple(d for d in disruption.evictable if d.pod.uid not in late),
        pods=tuple(replace(p, deleting=now) if p.uid in late else p for p in disruption.pods),
    )


def _plan_late(
    disruption: WorkloadDisruption, draft: _Draft, headroom: Headroom, now: datetime
) -> None:
    """Tell every pod to stop whose latest safe start has come, ready replacement or not."""
    for one in disruption.evictable:
        if one.late(now):
            headroom.move(one.pod)
            headroom.contention.promise(one.pod)
            draft.add(_last_call(one, now), {one.pod.node or ""})


def _last_call(one: EvictablePod, now: datetime) -> Evict:
    grace = one.clamped_grace(now)
    reason = f"its latest safe start has come: it may need {one.pod.stop_seconds} s to stop"
    if grace is not None:
        reason += f", of which {grace} s are left"
    return Evict(pod=one.pod, grace_seconds=grace, overrule=True, reason=reason)


def _plan_moves(disruption: WorkloadDisruption, draft: _Draft, headroom: Headroom) -> None:
    """Go on with pods that still have time; what is left of a disruption may be nothing."""
    patient = tuple(one for one in disruption.evictable if one.pod.restarts)
    if len(patient) < len(disruption.evictable):  # it may finish or checkpoint until its last call
        disruption = replace(disruption, evictable=patient)
    if not (disruption.evictable or disruption.released):
        return
    nodes = draft.interrupted.nodes_of(disruption)
    way, why = way_of(disruption)
    steps = way.steps(disruption, headroom)
    for action in steps.actions:
        draft.add(action, nodes)
    if steps.waiting is not None:
        draft.wait(f"{disruption.ref} ({way.name}, because {why}): {steps.waiting}", nodes)


def _plan_endings(draft: _Draft, now: datetime) -> None:
    """Finish with nodes that are empty or gone, and say which pods keep others from being empty."""
    for node in draft.interrupted.nodes:
        if held := opted_out_on(draft.seen, node):
            named = ", ".join(map(str, held))
            draft.wait(f"is not empty before its opted-out pods end: {named}", {node.name})
    for name, action in finalize_steps(draft.seen, draft.interrupted, now):
        draft.add(action, {name})
