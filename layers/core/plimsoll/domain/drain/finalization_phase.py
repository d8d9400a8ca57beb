"""Last phase of a plan: marks, cordons whose turn it is, and the end of interruptions."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from plimsoll.domain.actions import Cordon, Evict, ForceDelete, TaintNode, Uncordon, Unguard
from plimsoll.domain.disruptions import (
    NAME_TOLERATIONS,
    WorkloadDisruption,
    guards_at_warning,
    has_returned,
    held_on,
    left_on,
    opted_out_on,
)
from plimsoll.domain.drain.added_nodes import may_be_added, scale_down_steps
from plimsoll.domain.drain.dead_pods import kept
from plimsoll.domain.drain.do_not_disrupt import outlived
from plimsoll.domain.drain.finalize import finalize_steps
from plimsoll.domain.drain.load_balancers import exclusions
from plimsoll.domain.drain.plan_builder import PlanBuilder
from plimsoll.domain.kubernetes import Node
from plimsoll.domain.observation import Observation, is_gone
from plimsoll.domain.scheduling import Headroom
from plimsoll.domain.zones import frozen_zones, has_shift_taint


def plan_finalization(
    draft: PlanBuilder,
    turns: Iterable[tuple[Node, Cordon | str]],
    headroom: Headroom,
) -> None:
    """Mark nodes for shifted zones and load balancers, cordon those whose turn it is, and finish with others.

    Args:
        draft: the plan so far.
        turns: nodes that wait for their cordon, each with it, or with what it waits for.
        headroom: after all replacements.
    """
    for taint in _shift_taints(draft.seen):
        draft.add(taint, {taint.node.name})
    for exclusion in exclusions(draft.seen, draft.interrupted, draft.now):
        draft.add(exclusion, {exclusion.node.name})
    for node, turn in turns:
        if isinstance(turn, str):
            draft.wait(turn, {node.name})
        else:
            draft.add(turn, {node.name})
    _plan_endings(draft, headroom)
    for mark in outlived(draft.seen, draft.interrupted.names, draft.steps):
        draft.add(mark, {mark.pod.node or ""})


def plan_guards(draft: PlanBuilder, disruptions: Sequence[WorkloadDisruption]) -> None:
    """Make budgets at a warning, and take ours away where an owner has made another meanwhile: two let no pod go."""
    for guard in guards_at_warning(draft.seen):
        draft.add(guard, draft.interrupted.names)
    for disruption in disruptions:
        if len(disruption.budgets) > 1:
            for budget in disruption.budgets:
                if budget.guards:
                    why = "the eviction API refuses pods that several budgets cover"
                    draft.add(Unguard(budget=budget, reason=why), draft.interrupted.names)


def _shift_taints(seen: Observation) -> Iterator[TaintNode]:
    """Yield the nodes that new pods are to keep away from, and those of zones that traffic came back to.

    Nothing where nobody knows which shifts stand.
    """
    if seen.shifts is None:
        return
    zones = frozen_zones(seen)
    for node in seen.nodes:
        tainted = has_shift_taint(node)
        if (node.zone in zones) == tainted:
            continue
        words = "came back to" if tainted else "is shifted away from"
        yield TaintNode(
            node=node, tainted=not tainted, reason=f"traffic {words} its zone {node.zone or ''}"
        )


def _plan_endings(draft: PlanBuilder, headroom: Headroom) -> None:
    """Finish with nodes that are empty or gone, and say which pods keep others from being empty."""
    for node in draft.interrupted.nodes:
        if opted_out := opted_out_on(draft.seen, node):
            named = ", ".join(map(str, opted_out))
            draft.wait(f"is not empty before its opted-out pods end: {named}", {node.name})
        came = [pod for pod in left_on(draft.seen, node) if has_returned(pod, node)]
        if came and not is_gone(draft.seen, node):
            named = ", ".join(map(str, came))
            words = f"is not empty: these came after its cordon, and would come again: {named}"
            draft.wait(f"{words}; {NAME_TOLERATIONS}", {node.name})
        if held := held_on(draft.seen, node, draft.now, draft.refused):
            named = ", ".join(map(str, held))
            found = draft.interrupted.interruption[node.name]
            words = f"{draft.seen.policy.response(found)} on {found.kind}"
            draft.wait(f"these stay until there is a deadline ({words}): {named}", {node.name})
    # A node that this plan opens again is not at its end, whatever its record says.
    back = {
        name for step in draft.steps if isinstance(step.action, Uncordon) for name in step.nodes
    }
    endings = [
        (name, action)
        for name, action in finalize_steps(draft.seen, draft.interrupted, draft.now)
        if name not in back
    ]
    dead = [action.pod for _, action in endings if isinstance(action, Evict | ForceDelete)]
    why_kept = kept(draft.seen, draft.interrupted, dead, headroom, draft.now)
    for name, action in endings:
        match action:
            case Evict(pod=pod) | ForceDelete(pod=pod) if why := why_kept.get(pod.uid):
                draft.wait(f"{pod} died; {why}", {name})
            case _:
                draft.add(action, {name})
    for step in scale_down_steps(draft.seen, draft.now):
        draft.add(step, {step.node.name})
    if not draft.seen.groups:
        draft.wait("its node group says whether it was added", may_be_added(draft.seen))
