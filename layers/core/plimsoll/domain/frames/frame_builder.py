"""Makes the frame of a storm: pure, from a plan with its observation, and the frame before."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import Final

from plimsoll.domain.actions import Action
from plimsoll.domain.drain import ClusterPlan
from plimsoll.domain.frames.capacity_frames import coming_nodes, full_groups, group_frames
from plimsoll.domain.frames.frame import (
    MOST_NODES,
    MOST_PODS,
    MOST_WORKLOADS,
    Frame,
    FrameCounts,
    NodeFrame,
    OthersFrame,
    WorkloadFrame,
    thinned,
)
from plimsoll.domain.frames.node_frames import lines_with, node_frames
from plimsoll.domain.frames.operator_task import operator_task
from plimsoll.domain.frames.workload_frames import Scene, pods_at_risk, workload_frames
from plimsoll.domain.node_groups import Refusal
from plimsoll.domain.observation import InterruptedNodes, Observation

TOGETHER: Final = timedelta(minutes=2)
"""Notices that follow each other within this time are one storm."""
BUSY: Final = timedelta(seconds=10)
"""When the next frame comes at the latest while a drain observes once a second."""
CALM: Final = timedelta(seconds=90)
"""The same where only the resync looks, once a minute."""
_MOST_ZONES: Final = 6


def frame_of(
    plan: ClusterPlan,
    before: Frame | None,
    *,
    done: Sequence[Action] | None = None,
    refusals: Mapping[str, Sequence[Refusal]] | None = None,
) -> Frame | None:
    """Return the storm as it is now; None where no node is interrupted and none was.

    Args:
        plan: of an observation.
        before: the last frame of the cluster, if there is one.
        done: what was carried out since then; what the plan says, where nobody tells.
        refusals: as in `plan_drain`.
    """
    begun = _storm(plan.seen, before)
    if begun is None:
        return None
    storm, latest = begun
    if before is not None and before.storm != storm:
        before = None
    scene = Scene(plan=plan, storm=storm)
    done = plan.actions if done is None else done
    works = workload_frames(scene, before.workloads if before else ())
    nodes = node_frames(scene, before.nodes if before else ())
    groups = group_frames(scene, before.capacity if before else (), done, refusals or {})
    full = full_groups(scene)
    coming = coming_nodes(scene, done)
    counts = _counts(works, nodes, before)
    wait = BUSY if plan.busy else CALM
    left_out = works[MOST_WORKLOADS:]
    settled = sum(frame.settled for frame in left_out)
    return Frame(
        cluster=plan.seen.cluster,
        storm=storm,
        latest=latest,
        number=before.number + 1 if before else 1,
        at=plan.at,
        next_by=plan.at + wait if scene.interrupted.nodes else None,
        deadline=min((n.deadline for n in nodes if n.deadline and n.gone is None), default=None),
        counts=counts,
        task=operator_task(scene, works, groups, full, coming),
        full=full,
        workloads=tuple(works[:MOST_WORKLOADS]),
        others=OthersFrame(settled=settled, moving=len(left_out) - settled),
        nodes=tuple(nodes[:MOST_NODES]),
        nodes_of=max(len(nodes), before.nodes_of if before else 0),
        nodes_empty=sum(node.empty for node in nodes)
        + max(0, (before.nodes_of if before else 0) - len(nodes)),
        slowest=_slowest(nodes, before),
        zones=tuple(sorted({node.zone for node in nodes if node.zone})[:_MOST_ZONES]),
        pods=tuple(pods_at_risk(scene, works))[:MOST_PODS],
        capacity=groups,
        lines=lines_with(before.lines if before else (), done, scene.second),
        trace=_traced(before, scene.second, counts),
    )


def _storm(seen: Observation, before: Frame | None) -> tuple[datetime, datetime] | None:
    """Return the first and the last notice of the storm that goes on, or of the one before.

    A node that was noticed long before the others, and still waits, begins no storm: seconds count from the first
    of the last notices that follow each other.
    """
    interrupted = InterruptedNodes.of(seen)
    noticed = sorted(found.noticed for found in interrupted.interruption.values())
    if not noticed:
        return (before.storm, before.latest) if before else None
    first = noticed[-1]
    for time in reversed(noticed):
        if first - time > TOGETHER:
            break
        first = time
    if before is not None and first - before.latest <= TOGETHER:
        return before.storm, max(before.latest, noticed[-1])
    return first, noticed[-1]


def _counts(
    works: Sequence[WorkloadFrame], nodes: Sequence[NodeFrame], before: Frame | None
) -> FrameCounts:
    killed = sum(node.killed for node in nodes)
    return FrameCounts(
        of=sum(frame.of for frame in works),
        safe=sum(frame.safe for frame in works),
        starting=sum(frame.starting for frame in works),
        no_node=sum(frame.no_node for frame in works),
        not_begun=sum(frame.not_begun for frame in works),
        at_risk=sum(frame.at_risk for frame in works),
        # By node: the object of a killed pod is soon gone, and a workload forgets it.
        killed=max(killed, before.counts.killed if before else 0),
        below_floor=sum(frame.below_floor for frame in works),
        at_zero=sum(frame.at_zero for frame in works),
    )


def _slowest(nodes: Sequence[NodeFrame], before: Frame | None) -> float | None:
    emptied = [node.emptied for node in nodes if node.emptied is not None]
    if before is not None and before.slowest is not None:
        emptied.append(before.slowest)
    return max(emptied, default=None)


def _traced(
    before: Frame | None, second: float, counts: FrameCounts
) -> tuple[tuple[float, int, int], ...]:
    point = (second, counts.safe, counts.safe + counts.starting + counts.no_node)
    known = before.trace if before else ()
    return known if known and known[-1][1:] == point[1:] else thinned((*known, point))
