"""How an interruption ends: the node is empty, the instance gone, the report written."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime

from plimsoll.domain.actions import (
    Action,
    CompleteLifecycle,
    ForceDelete,
    OutOfService,
    Record,
    TerminateInstance,
    Uncordon,
)
from plimsoll.domain.disruptions import InterruptedNodes, ignored, is_gone, leaves, must_leave
from plimsoll.domain.interruptions import Interruption, marked
from plimsoll.domain.nodes import Node
from plimsoll.domain.observation import Observation
from plimsoll.domain.pods import Pod
from plimsoll.domain.replace.disruption import WorkloadDisruption
from plimsoll.domain.reports import Report


def finalize_steps(
    seen: Observation, interrupted: InterruptedNodes, now: datetime
) -> Iterator[tuple[str, Action]]:
    """Yield, for each node, what its state asks for: marks, completion, release, freed volumes."""
    for node in interrupted.nodes:
        yield from ((node.name, action) for action in _finalize(seen, node, now))


def _finalize(seen: Observation, node: Node, now: datetime) -> Iterator[Action]:
    interruption = node.interruption
    assert interruption is not None  # noqa: S101 - interrupted nodes have one
    if interruption.withdrawn:
        yield Uncordon(node=node, reason="everything that was announced has been called off")
        return
    gone = is_gone(seen, node)
    if gone and seen.attached.get(node.name) and "out-of-service" not in _taints(node):
        yield OutOfService(node=node, reason="its instance is gone and volumes hang on it")
    left = left_on(seen, node)
    if gone:
        for pod in left:
            yield ForceDelete(pod=pod, reason=f"it died with {node.instance}, and is counted still")
    empty = not left and not opted_out_on(seen, node)
    reached = marked(
        interruption,
        emptied=now if empty and interruption.emptied is None and not gone else None,
        gone=now if gone and interruption.gone is None else None,
        closed=now if _finished(interruption, empty=empty) else None,
    )
    if empty and interruption.hooks:
        yield CompleteLifecycle(
            node=node,
            interruption=marked(reached, closed=now),
            reason="it is drained and need not wait any longer",
        )
    elif reached.closed and interruption.closed is None and _renews(seen, node):
        yield TerminateInstance(
            node=node,
            interruption=reached,
            reason="it is empty, and its group may be renewed before it is taken away",
        )
    elif reached != interruption:
        said = "its instance is gone" if gone else "no pod is left on it that must leave"
        yield Record(node=node, interruption=reached, reason=said)


def _finished(interruption: Interruption, *, empty: bool) -> bool:
    """Without a deadline an empty node is the end; with one, the instance still has to go."""
    return empty and interruption.deadline is None


def _renews(seen: Observation, node: Node) -> bool:
    return any(g.renew and node.instance in g.instances for g in seen.groups)


def _taints(node: Node) -> set[str]:
    return {taint.key.rpartition("/")[2] for taint in node.taints}


def left_on(seen: Observation, node: Node) -> list[Pod]:
    """Pods that must leave and have not, the stopping ones too."""
    return [pod for pod in seen.on_node.get(node.name, ()) if must_leave(seen, pod, node)]


def opted_out_on(seen: Observation, node: Node) -> list[Pod]:
    """Pods whose owners opted out: never touched, and a node that holds one is never empty."""
    return [pod for pod in seen.on_node.get(node.name, ()) if leaves(pod) and ignored(seen, pod)]


def report_of(  # noqa: PLR0913 - what a report is made of, each part named
    seen: Observation,
    node: Node,
    here: Sequence[WorkloadDisruption],
    reasons: Iterable[str],
    *,
    asked: bool,
    now: datetime,
) -> Report:
    """Return what is known of an interruption now; reports of many rounds are merged.

    Args:
        seen: the observation.
        node: the interrupted node.
        here: the cases with pods on it.
        reasons: the steps of the plan for it, and what it waits for, in words.
        asked: whether the plan asks for capacity.
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
        killed=tuple(str(p) for p in left_on(seen, node)) if gone else (),
        reasons=tuple(reasons),
    )


def _replaced(here: Iterable[WorkloadDisruption]) -> bool:
    """Whether everything that stands on a node and can run twice is Ready elsewhere in full."""
    workloads = [disruption for disruption in here if disruption.workload is not None]
    return bool(workloads) and all(c.staying_ready >= c.replicas for c in workloads)
