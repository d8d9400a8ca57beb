"""First phase of a plan: nodes for the replacements, and places that are kept for pods which leave later."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from plimsoll.domain.capacity import ScaleUp, plan_scale_up
from plimsoll.domain.disruptions import WorkloadDisruption
from plimsoll.domain.drain.cordon_rate_limit import given_back
from plimsoll.domain.drain.plan_builder import MOST_NAMED, PlanBuilder
from plimsoll.domain.drain.strategies import returning, strategy_of
from plimsoll.domain.kubernetes import Pod
from plimsoll.domain.node_groups import Refusal
from plimsoll.domain.scheduling import Headroom


@dataclass(frozen=True, slots=True, kw_only=True)
class CapacityPhase:
    """What the capacity phase has decided."""

    scale_up: ScaleUp
    uncordons: bool
    """Whether a node is uncordoned for a pod with no other place. Replacements then wait for the next plan."""


def plan_capacity(
    draft: PlanBuilder,
    disruptions: Sequence[WorkloadDisruption],
    headroom: Headroom,
    refusals: Mapping[str, Sequence[Refusal]],
) -> tuple[CapacityPhase, Headroom]:
    """Request nodes, and reserve the places of pods that come back only after they have left.

    Returns:
        what is requested, and the headroom that is left: it knows which pods no node and no node group can take.
    """
    interrupted, now = draft.interrupted, draft.now
    # Requests come before reservations: they count the same pods, which would then find their own places taken.
    scale_up = plan_scale_up(
        draft.seen, interrupted, disruptions, headroom, refusals=refusals, now=now
    )
    headroom = replace(headroom, unplaceable=scale_up.unplaceable)
    for grow in scale_up.grows:
        draft.add(grow, interrupted.names)
    for words in scale_up.doubts:
        draft.wait(words, interrupted.names)
    for words in scale_up.refused.values():
        draft.refuse(words, interrupted.names)
    _tell_lacking(draft, scale_up)
    # On advice alone a node need not go. It is opened only for a pod that neither a node nor a request takes.
    back = list(given_back(draft.seen, scale_up.unplaceable, headroom.snapshot, now))
    for uncordon in back:
        draft.add(uncordon, {uncordon.node.name})
    # Pods that come back under their own names or in their own places are counted before any is released: no replacement
    # that can stand beside the old pod may have their places.
    owed = (pod for one in disruptions if not strategy_of(one)[0].surges for pod in owed_of(one))
    for pod in (*owed, *returning(draft.seen)):
        headroom.reserve(pod)
    return CapacityPhase(scale_up=scale_up, uncordons=bool(back)), headroom


def owed_of(disruption: WorkloadDisruption) -> Sequence[Pod]:
    """Return the pods that were asked to stop and whose successors do not exist yet, not even as Pending pods."""
    if disruption.workload is None:
        return [pod for pod in disruption.leaving if not pod.bare]
    made = sum(not p.released for p in disruption.staying) + sum(
        not d.pod.released for d in disruption.evictable
    )
    return disruption.leaving[: max(0, disruption.workload.replicas - made)]


def _tell_lacking(draft: PlanBuilder, scale_up: ScaleUp) -> None:
    """Say on each node which of its pods have no headroom, and on all of them which Pending pods have none.

    Hundreds of reports would name the same Pending pods: of many workloads only the number is told.
    """
    if not scale_up.given_up:
        return
    on_node = draft.seen.on_node
    home = {str(p): n for n in draft.interrupted.names for p in on_node.get(n, ())}
    pending: list[tuple[Sequence[Pod], str]] = []
    for pods, why in scale_up.given_up:
        here: dict[str | None, list[Pod]] = defaultdict(list)
        for pod in pods:
            here[home.get(str(pod))].append(pod)
        if others := here.pop(None, None):
            pending.append((others, why))
        for node, some in here.items():
            draft.lack(some, why, {node or ""})
    for pods, why in pending[:MOST_NAMED]:
        draft.lack(pods, why, draft.interrupted.names)
    if more := pending[MOST_NAMED:]:
        count = sum(len(pods) for pods, _ in more)
        draft.refuse(f"no headroom for {count} more Pending pods", draft.interrupted.names)
