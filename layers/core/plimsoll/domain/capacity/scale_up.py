"""How much headroom the pods that must move will need, and what node groups are asked for it."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from functools import partial
from hashlib import sha256

from plimsoll.domain.actions import Grow
from plimsoll.domain.capacity.advised_nodes import kept_out
from plimsoll.domain.capacity.growth_plan import GrowthPlan, plan_growth
from plimsoll.domain.disruptions import Cause, WorkloadDisruption, ended_by_owner
from plimsoll.domain.kubernetes import (
    Pod,
    Ref,
    is_recreated,
    replacement_of,
    successor_of,
)
from plimsoll.domain.node_groups import (
    DOUBTED_AFTER_REFUSAL,
    FIRST_SIGN_WITHIN,
    Expectation,
    GroupMaximum,
    NodeGroup,
    Refusal,
    expected_nodes,
    on_the_way,
    refusal_advice,
)
from plimsoll.domain.notices import LifecycleTerminate
from plimsoll.domain.observation import InterruptedNodes, Observation, leaves
from plimsoll.domain.scheduling import Headroom
from plimsoll.domain.zones import frozen_zones


@dataclass(frozen=True, slots=True, kw_only=True)
class ScaleUp:
    """What to ask for, and who cannot be helped by any group."""

    grows: tuple[Grow, ...] = ()
    doubts: tuple[str, ...] = ()
    """In words: groups of which nodes are not counted on."""
    given_up: tuple[tuple[Sequence[Pod], str], ...] = ()
    """Pods that no node and no group can take, and why: by priority, those of one workload and cause together."""
    unplaceable: Collection[str] = frozenset()
    """The uids of these pods."""
    refused: Mapping[str, str] = field(default_factory=dict)
    """Key of a group and kind of refusal -> why it gave no nodes lately, and the cure, in words."""


def plan_scale_up(  # noqa: PLR0913 - the whole world of the decision, each part named
    seen: Observation,
    interrupted: InterruptedNodes,
    disruptions: Sequence[WorkloadDisruption],
    headroom: Headroom,
    *,
    refusals: Mapping[str, Sequence[Refusal]],
    now: datetime,
) -> ScaleUp:
    """Return what to ask for so that every replacement has a node.

    What an owner ended himself is not replaced: he wants less, or his group replaces it. A group
    that ends an instance by a lifecycle action may want less too, or replace it: it is the last resort.
    """
    ended = {n.name for n in interrupted.nodes if ended_by_owner(seen, n)}
    planned = {disruption.ref for disruption in disruptions}
    if ended >= interrupted.names:  # what else waits for a node does so without our doing
        notified = all(
            one.departure.cause is Cause.INTERRUPTION for d in disruptions for one in d.evictable
        )
        short = _held_up(seen, headroom, set() if notified else planned, now)
        if notified and not short:
            return ScaleUp()
    else:
        short = [
            pod
            for pod in headroom.short
            if pod.pending or not (pod.node in ended or seen.workload_of(pod) in planned)
        ]
    unschedulable = [*short, *_replacements(disruptions, ended)]
    groups = seen.groups
    expected = {g.key: _expected(g, seen, interrupted, now) for g in groups}
    doubts = {key: e for key, e in expected.items() if e.doubt}
    grown = partial(
        plan_growth,
        headroom.snapshot,
        unschedulable,
        groups,
        upcoming=on_the_way(expected),
        doubts=doubts,
        refusals=refusals,
        pools=seen.pools,
        frozen=frozen_zones(seen),
        now=now,
    )
    plan = grown()
    # Only a plan shows which groups are idle: it counts on them for
    # pods that have waited. The second plan doubts these groups.
    if idle := [*_idle(plan, short, now)]:
        doubt = f"it has begun no node within {FIRST_SIGN_WITHIN} for a Pending pod"
        doubts |= {key: replace(expected[key], doubt=doubt) for key in idle}
        plan = grown()
    # Only if some pod gets no node: the usual order needs fewer nodes.
    if any(pod.priority >= 0 and pod.uid in plan.unplaceable for pod in unschedulable):
        plan = grown(foremost=frozenset(_first(seen, interrupted, headroom, unschedulable)))
    lost = [pod for pod in unschedulable if pod.uid in plan.unplaceable]
    told = {
        group.key: [
            refusal
            # Both lists begin with the newest, and the report keeps the last one of a group and kind.
            for refusal in reversed(
                (*refusals.get(group.key, ()), *group.refusals, *_at_maximum(plan, group, now))
            )
            if now < refusal.at + DOUBTED_AFTER_REFUSAL
        ]
        for group in groups
    }
    return ScaleUp(
        grows=tuple(
            Grow(
                group=growth.group,
                add=growth.add,
                zone=growth.zone,
                token=grow_token(
                    seen.cluster,
                    growth.group,
                    growth.zone,
                    growth.add,
                    now,
                    refused=_newest(refusals, growth.group),
                ),
                reason=growth.reason,
            )
            for growth in plan.growths
            if not growth.group.provisions
        ),
        doubts=tuple(
            f"{group.name} is the last resort: {doubts[group.key].doubt}"
            for group in groups
            if group.key in doubts
        ),
        given_up=tuple(_given_up(seen, lost, plan)),
        unplaceable=plan.unplaceable.keys(),
        refused={
            f"{group.key}: {refusal.kind}": refusal_advice(group.name, refusal)
            for group in groups
            for refusal in told[group.key]
        },
    )


def _given_up(
    seen: Observation, lost: Sequence[Pod], plan: GrowthPlan
) -> Iterator[tuple[Sequence[Pod], str]]:
    found: dict[tuple[Ref, str], list[Pod]] = defaultdict(list)
    # Sorted by priority, then by name: the report says the same from plan to plan.
    for pod in sorted(lost, key=lambda p: (-p.priority, str(p))):
        priority = f" (priority {pod.priority})" if pod.priority else ""
        found[seen.workload_of(pod), f"{plan.unplaceable[pod.uid]}{priority}"].append(pod)
    return ((pods, why) for (_, why), pods in found.items())


def _held_up(
    seen: Observation, headroom: Headroom, drained: Collection[Ref], now: datetime
) -> list[Pod]:
    """Return the pods that wait for a node by our doing although none is interrupted.

    They are of a workload that leaves nodes which others drain, or a node left on advice would take them.
    """
    waiting = [pod for pod in headroom.short if pod.pending]
    kept = {pod.uid for pod, _ in kept_out(seen, waiting, headroom.snapshot, now)}
    return [p for p in waiting if p.uid in kept or seen.workload_of(p) in drained]


def _at_maximum(plan: GrowthPlan, group: NodeGroup, now: datetime) -> Iterator[GroupMaximum]:
    """Yield the refusal that a group would answer with: it is not asked, since its maximum is known."""
    if group.key in plan.full:
        yield GroupMaximum(at=now, why=f"it is at its maximum of {group.max_size} nodes")


def grow_token(  # noqa: PLR0913 - all that a request is told apart by
    cluster: str,
    group: NodeGroup,
    zone: str | None,
    add: int,
    now: datetime,
    *,
    refused: datetime | None = None,
) -> str:
    """Name an ask by what it is for, so that two who see the same ask the same.

    The desired capacity it was decided on is part of it: once the group has grown, a further ask
    is another one. So are the minute and the last refusal: a refusal is remembered under its token, and
    repeated long after there is capacity again. 64 characters is what Auto Scaling and EKS take.

    Args:
        cluster: its name.
        group: the group that is asked.
        zone: where; None: the group chooses.
        add: how many nodes.
        now: the time.
        refused: when the group refused the last time, if it did.
    """
    minute = int(now.timestamp() // 60)
    what = (cluster, group.kind, group.name, zone or "", group.desired, add, minute, refused or "")
    return sha256("/".join(map(str, what)).encode()).hexdigest()


def _newest(refusals: Mapping[str, Sequence[Refusal]], group: NodeGroup) -> datetime | None:
    return max((refusal.at for refusal in refusals.get(group.key, ())), default=None)


def _first(
    seen: Observation,
    interrupted: InterruptedNodes,
    headroom: Headroom,
    unschedulable: Sequence[Pod],
) -> Iterator[str]:
    """Yield the uid of one pod of each workload that has no place elsewhere yet.

    Where capacity is short, none gets a second place while another has none.
    """
    nowhere = {None, *interrupted.names}
    begun = {
        seen.workload_of(pod)
        for pod in seen.pods
        if pod.deleting is None and headroom.snapshot.where(pod) not in nowhere
    }
    for pod in unschedulable:
        ref = seen.workload_of(pod)
        if pod.restarts and ref not in begun:
            begun.add(ref)
            yield pod.uid


def _replacements(
    disruptions: Sequence[WorkloadDisruption], ended: Collection[str]
) -> Iterator[Pod]:
    """Yield what does not exist yet: for each workload as many as it will be short of.

    Nothing for pods that nobody makes again. A pod that leaves first makes way for its replacement, by its name, zone or spread.
    """
    for disruption in disruptions:
        interrupted = sorted(
            (
                p
                for p in disruption.pods
                if p.uid in disruption.on_interrupted_nodes and leaves(p) and p.node not in ended
                if disruption.workload is not None or is_recreated(p)
            ),
            key=lambda p: p.released or p.deleting is not None,
        )
        if disruption.ref.kind == "Pod":
            continue
        wanted = (
            len(interrupted)
            if disruption.workload is None
            else min(disruption.missing, len(interrupted))
        )
        for pod in interrupted[:wanted]:
            leaves_first = (
                disruption.ref.kind == "StatefulSet" or pod.uid in disruption.not_releasable
            )
            yield successor_of(pod) if leaves_first else replacement_of(pod)


def _idle(plan: GrowthPlan, short: Sequence[Pod], now: datetime) -> Iterator[str]:
    """Yield the keys of groups that should have begun nodes for Pending pods by themselves, and did not.

    Pods for which they cannot make any say nothing about them.
    """
    since = {str(pod): pod.created for pod in short if pod.pending}
    for growth in plan.growths:
        group = growth.group
        waited = [since[pod] for pod in growth.pods if pod in since]
        if group.provisions and waited:
            begun = max(min(waited), group.asked or min(waited))
            if begun + FIRST_SIGN_WITHIN <= now:
                yield group.key


def _expected(
    group: NodeGroup, seen: Observation, interrupted: InterruptedNodes, now: datetime
) -> Expectation:
    """Return what to expect of a group, and doubt one that may be about to shrink."""
    found = expected_nodes(group, seen.nodes, now)
    if found.doubt or not _may_shrink(group, interrupted):
        return found
    return replace(found, doubt="it ends an instance by a lifecycle action")


def _may_shrink(group: NodeGroup, interrupted: InterruptedNodes) -> bool:
    return any(
        node.instance in group.instances
        and any(
            n.kind == LifecycleTerminate.kind for n in interrupted.interruption[node.name].standing
        )
        for node in interrupted.nodes
    )
