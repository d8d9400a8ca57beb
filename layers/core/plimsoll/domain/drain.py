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
from plimsoll.domain.cases import Going, by_node, cases_of
from plimsoll.domain.closing import closing_steps, report_of
from plimsoll.domain.demand import plan_capacity
from plimsoll.domain.observation import Observation
from plimsoll.domain.plan import Plan, Step
from plimsoll.domain.replace import Case, Doomed, Room, way_of
from plimsoll.domain.replace.late import LATE
from plimsoll.domain.replace.swap import restore
from plimsoll.domain.waiting import room_for


def plan_drain(
    seen: Observation,
    now: datetime,
    *,
    avoid: Mapping[tuple[str, str | None], datetime] | None = None,
) -> Plan:
    """Decide what to do now about every node of a cluster that is going.

    Args:
        seen: one look at the cluster and its node groups.
        now: the time of the look.
        avoid: (node group, zone or None for all) -> until when it is not asked, because it refused.
    """
    going = Going.of(seen)
    cases = cases_of(seen, going, now)
    draft = _Draft(seen=seen, going=going)
    room = room_for(seen, going)
    demand = plan_capacity(seen, going, cases, room.board, avoid=avoid or {}, now=now)
    for grow in demand.grows:
        draft.add(grow, going.names)
    for words in demand.given_up:
        draft.wait(words, going.names)
    for case in cases:
        if not way_of(case)[0].surges:
            for pod in case.owed:
                room.keep(pod)
    for case in cases:
        _plan_late(case, draft, room, now)
    for case in sorted(cases, key=_urgency):
        if case.doomed:
            _plan_moves(_without_late(case, now), draft, room)
        else:
            _plan_rest(case, draft)
    for node, action in closing_steps(seen, going, now):
        draft.add(action, {node})
    here = by_node(cases)
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
                asked=bool(demand.grows),
                now=now,
            )
            for node in going.nodes
        ),
        busy=bool(steps) or _under_way(cases, going),
        next_call=min((start for start in _latest_starts(cases) if start > now), default=None),
    )


@dataclass(slots=True)
class _Draft:
    """A plan in the making."""

    seen: Observation
    going: Going
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


def _urgency(case: Case) -> tuple[bool, bool, int, int, str]:
    """Who would be below its floor, or at zero, chooses first; then who cannot run twice."""
    way, _ = way_of(case)
    spare = case.staying_ready - max(case.floor, min(1, case.replicas))
    priority = max((d.pod.priority for d in case.doomed), default=0)
    return spare >= 0, way.surges, spare, -priority, str(case.ref)


def _latest_starts(cases: Iterable[Case]) -> Iterator[datetime]:
    for case in cases:
        for one in case.doomed:
            if one.latest_start is not None:
                yield one.latest_start


def _under_way(cases: Iterable[Case], going: Going) -> bool:
    if any(i.deadline and i.phase == "open" for i in going.interruption.values()):
        return True
    return any(case.temporary or (case.doomed and way_of(case)[0] is not LATE) for case in cases)


def _without_late(case: Case, now: datetime) -> Case:
    """Return a case without the pods that are told to stop in this plan: they serve no longer."""
    late = {d.pod.uid for d in case.doomed if d.late(now)}
    return replace(
        case,
        doomed=tuple(d for d in case.doomed if d.pod.uid not in late),
        pods=tuple(replace(p, deleting=now) if p.uid in late else p for p in case.pods),
    )


def _plan_late(case: Case, draft: _Draft, room: Room, now: datetime) -> None:
    """Tell every pod to stop whose latest safe start has come, ready replacement or not."""
    for one in case.doomed:
        if one.late(now):
            room.move(one.pod)
            room.crowd.promise(one.pod)
            draft.add(_last_call(one, now), {one.pod.node or ""})


def _last_call(one: Doomed, now: datetime) -> Evict:
    grace = one.clamped_grace(now)
    reason = f"its latest safe start has come: it may need {one.pod.grace_seconds} s to stop"
    if grace is not None:
        reason += f", of which {grace} s are left"
    return Evict(pod=one.pod, grace_seconds=grace, overrule=True, reason=reason)


def _plan_moves(case: Case, draft: _Draft, room: Room) -> None:
    """Go on with pods that still have time; what is left of a case may be nothing."""
    if not case.doomed:
        return
    nodes = draft.going.nodes_of(case)
    way, why = way_of(case)
    steps = way.steps(case, room)
    for action in steps.actions:
        draft.add(action, nodes)
    if steps.waiting is not None:
        draft.wait(f"{case.ref} ({way.name}, because {why}): {steps.waiting}", nodes)


def _plan_rest(case: Case, draft: _Draft) -> None:
    """Put back what was changed for a while."""
    action = restore(case)
    if action is not None:
        draft.add(action, draft.going.nodes_of(case))
