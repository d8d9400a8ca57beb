"""Last phase of a plan: marks, cordons whose turn it is, and how interruptions end.

An interruption ends with its node empty, its instance gone and its report written.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Final

from plimsoll.domain.actions import (
    Action,
    CompleteLifecycle,
    Cordon,
    Evict,
    ForceDelete,
    Heartbeat,
    OutOfService,
    Record,
    TaintNode,
    TerminateInstance,
    Uncordon,
    Unguard,
)
from plimsoll.domain.disruptions import (
    NAME_TOLERATIONS,
    WorkloadDisruption,
    died_on,
    guards_at_warning,
    has_returned,
    held_on,
    left_on,
    left_to_pod_gc,
    opted_out_on,
    why_over,
)
from plimsoll.domain.drain.added_nodes import may_be_added, scale_down_steps, taken_back
from plimsoll.domain.drain.dead_pods import kept
from plimsoll.domain.drain.do_not_disrupt import outlived
from plimsoll.domain.drain.load_balancers import exclusions
from plimsoll.domain.drain.plan_builder import PlanBuilder
from plimsoll.domain.interruptions import (
    SCALE_DOWN,
    Interruption,
    marked,
    needs_heartbeat,
    with_ends,
)
from plimsoll.domain.kubernetes import Node, Pod, why_node_protected
from plimsoll.domain.node_groups import NodeGroup
from plimsoll.domain.observation import InterruptedNodes, Observation, is_gone
from plimsoll.domain.reports import Reason, Report, merge_reasons
from plimsoll.domain.scheduling import Headroom
from plimsoll.domain.zones import frozen_zones, has_shift_taint

DETACH_PATIENCE: Final = timedelta(minutes=2)
"""How long an empty node waits for its volumes to be detached. Its successors' pods wait for the same volumes: an
instance that ends with them attached keeps them for six minutes more. The volume of a DaemonSet is never detached."""


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
    # The uncordons among the endings say which nodes stay: only then are the marks of their pods out of date.
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
        for name, action in _endings(draft.seen, draft.interrupted, draft.now)
        if name not in back
    ]
    dead = [action.pod for _, action in endings if isinstance(action, Evict | ForceDelete)]
    # All of the dead together, since they stand in one line for the places that are left.
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


def _endings(
    seen: Observation, interrupted: InterruptedNodes, now: datetime
) -> Iterator[tuple[str, Action]]:
    """Yield, for each node, what its state asks for: marks, completion, release, freed volumes."""
    back = taken_back(seen)
    for node in seen.nodes:
        over = why_over(seen, node, now)
        if over is None and node.name not in back and _is_scale_down(node):
            over = "no node of its group is to be taken back" if seen.groups else None
        if over is not None:
            yield node.name, Uncordon(node=node, reason=over)
        elif node.name in interrupted.names:
            yield from ((node.name, action) for action in _ending(seen, node, now, back))


def _ending(
    seen: Observation, node: Node, now: datetime, back: Mapping[str, NodeGroup]
) -> Iterator[Action]:
    interruption = node.interruption
    assert interruption is not None  # noqa: S101 - interrupted nodes have one
    gone = is_gone(seen, node)
    left = left_on(seen, node)
    if gone:
        yield from _after_death(seen, node, left, now)
    empty = not left and not opted_out_on(seen, node)
    detaching = not gone and _is_detaching(seen, node, now)
    hooks = seen.hooks_of(node)
    ours = tuple(hook for hook in hooks if hook.ours)
    # What is reached now goes into whichever record is written below.
    reached = marked(
        with_ends(interruption, {h.name: h.timeout for h in hooks}),
        emptied=now if empty and interruption.emptied is None and not gone else None,
        gone=now if gone and interruption.gone is None else None,
        closed=now if not detaching and _finished(interruption, empty=empty) else None,
    )
    # One action for each node, since each writes the whole record. An end comes before a heartbeat: an empty node is not
    # to wait any longer. A record of its own is written only where no other action writes it.
    if empty and ours and not detaching:
        yield CompleteLifecycle(
            node=node,
            interruption=marked(reached, closed=now),
            hooks=ours,
            reason="it is drained and need not wait any longer",
        )
    elif due := tuple(hook for hook in ours if not gone and needs_heartbeat(reached, hook, now)):
        yield Heartbeat(
            node=node,
            interruption=with_ends(reached, {h.name: h.longest for h in due}, heartbeat=now),
            hooks=due,
            reason="volumes are attached to it"
            if empty
            else "pods are on it that have not moved yet",
        )
    elif _is_scale_down(node) and node.name not in back:
        return  # its group could not be read
    elif reached.closed and interruption.closed is None and _renews(seen, node):
        shrunk = back.get(node.name)
        yield TerminateInstance(
            node=node,
            interruption=reached,
            shrunk=shrunk,
            reason="it is empty, and its group "
            + ("launches another in time" if shrunk is None else "has one more since we added it"),
        )
    elif reached != interruption:
        said = "its instance is gone" if gone else "no pod is left on it that must leave"
        if not gone and not empty:
            said = "its lifecycle hooks say how long they wait"
        yield Record(node=node, interruption=reached, reason=said)


def _after_death(
    seen: Observation, node: Node, left: Sequence[Pod], now: datetime
) -> Iterator[Action]:
    """Yield what frees the pods and volumes of an instance that is off.

    As long as its Node is Ready nothing is forced: should EC2 be wrong, the pods stop in good order. A member of a
    StatefulSet is then left alone: it would be made anew no sooner, its controller would make no other meanwhile, and it
    could not run on should its instance return. Jobs' pods are only ever evicted; Kubernetes' pod garbage collector then
    writes that they failed.
    """
    for_pod_gc = [pod for pod in left if left_to_pod_gc(node, pod, now)]
    if not node.ready and "out-of-service" not in _taints(node):
        if seen.attached.get(node.name):
            yield OutOfService(node=node, reason="its instance is gone and volumes hang on it")
        elif left and for_pod_gc == left and not opted_out_on(seen, node):
            said = "its instance is gone, and PodGC then ends the pods of Jobs on it within 20 s"
            yield OutOfService(node=node, reason=said)
    reason = f"it died with {node.instance}, and is counted still"
    for pod in left:
        if pod.held_by_finalizers:
            continue
        if not node.ready and not pod.of_job:
            yield ForceDelete(pod=pod, reason=reason)
        elif pod.deleting is None and pod not in for_pod_gc and not pod.of_stateful_set:
            yield Evict(pod=pod, overrule=not pod.of_job, reason=reason)


def _is_detaching(seen: Observation, node: Node, now: datetime) -> bool:
    emptied = node.interruption.emptied if node.interruption else None
    return bool(seen.attached.get(node.name)) and (
        emptied is None or now < emptied + DETACH_PATIENCE
    )


def _finished(interruption: Interruption, *, empty: bool) -> bool:
    """Without a deadline an empty node is the end; with one, the instance still has to go."""
    return empty and interruption.deadline is None


def _is_scale_down(node: Node) -> bool:
    return node.interruption is not None and node.interruption.kind == SCALE_DOWN


def _renews(seen: Observation, node: Node) -> bool:
    mine = (g for g in seen.groups if node.instance in g.instances)
    return why_node_protected(node) is None and any(g.renew for g in mine)


def _taints(node: Node) -> set[str]:
    return {taint.key.rpartition("/")[2] for taint in node.taints}


def report_of(  # noqa: PLR0913 - what a report is made of, each part named
    seen: Observation,
    node: Node,
    here: Sequence[WorkloadDisruption],
    reasons: Iterable[Reason],
    *,
    asked: bool,
    refused: Mapping[str, str],
    now: datetime,
) -> Report:
    """Return what is known of an interruption now; reports of many rounds are merged.

    Args:
        seen: the observation.
        node: the interrupted node.
        here: the cases with pods on it.
        reasons: the steps of the plan for it, and what it waits for.
        asked: whether the plan asks for capacity.
        refused: what node groups were refused lately, in words.
        now: the time of the observation.
    """
    interruption = node.interruption
    assert interruption is not None  # noqa: S101 - interrupted nodes have one
    gone = is_gone(seen, node)
    return Report(
        interruption=interruption.identity,
        cluster=seen.cluster,
        node=node.name,
        kind=interruption.kind,
        noticed=interruption.noticed,
        deadline=interruption.deadline,
        cordoned=interruption.cordoned,
        capacity_asked=now if asked else None,
        replaced=now if _replaced(here) else None,
        emptied=interruption.emptied,
        gone=interruption.gone,
        closed=interruption.closed,
        lowest_ready={str(c.ref): c.serving for c in here if c.workload is not None},
        fell={
            str(c.ref): {c.serving: now}
            for c in here
            if c.workload is not None and c.serving < c.replicas
        },
        below_floor={
            str(c.ref): c.floor - c.serving
            for c in here
            if c.workload is not None and c.serving < c.floor
        },
        killed=tuple(str(p) for p in died_on(seen, node)) if gone else (),
        refused=refused,
        reasons=merge_reasons(reasons),
    )


def _replaced(here: Iterable[WorkloadDisruption]) -> bool:
    """Whether everything that stands on a node and can run twice is Ready elsewhere in full."""
    workloads = [disruption for disruption in here if disruption.workload is not None]
    return bool(workloads) and all(c.staying_ready >= c.replicas for c in workloads)
