"""What the person who watches a storm must do: an act, wait, or nothing."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from plimsoll.domain.frames.capacity_frames import ComingNodes
from plimsoll.domain.frames.frame import MOST_ACTS, GroupFrame, OperatorTask, WorkloadFrame
from plimsoll.domain.frames.workload_frames import Scene


def operator_task(
    scene: Scene,
    workloads: Sequence[WorkloadFrame],
    groups: Sequence[GroupFrame],
    full: Sequence[str],
    coming: ComingNodes,
) -> OperatorTask:
    """Return what the person must do.

    A refusal is no task where another group made it good, nor while nodes are on their way.
    """
    short = [
        frame for frame in workloads if frame.at_zero or frame.below_floor or frame.no_node > 0
    ]
    if not short:
        return OperatorTask()
    stuck = [frame for frame in short if not coming.nodes and _is_stuck(frame)]
    if not stuck:
        return OperatorTask(
            waiting=True,
            nodes_coming=coming.nodes,
            next_at=scene.seconds(coming.next_at),
        )
    acts = dict.fromkeys(_acts(stuck, groups, full, known=bool(scene.seen.groups)))
    return OperatorTask(acts=tuple(acts)[:MOST_ACTS])


def _is_stuck(frame: WorkloadFrame) -> bool:
    """Whether nothing that is under way helps: no replacement starts, and none is about to be made."""
    return frame.no_node > 0 or not (frame.starting or frame.not_begun)


def _acts(
    stuck: Sequence[WorkloadFrame],
    groups: Sequence[GroupFrame],
    full: Sequence[str],
    *,
    known: bool,
) -> Iterator[str]:
    if any(frame.no_node for frame in stuck):
        refused = [group.refused for group in groups if group.refused and group.name not in full]
        for name in full:
            yield f"{name} has as many nodes as its owner allows: raise its maximum"
        yield from refused
        if not (full or refused):
            count = sum(frame.no_node for frame in stuck)
            pods = f"{count} pod{'s have' if count > 1 else ' has'} no node"
            if known:
                yield f"{pods} and no node group grows: add a node, or let a group grow (tag plimsoll.dev/grow)"
            else:
                yield f"{pods}, and node groups are not read here: see whether one of them launches"
    for frame in stuck:
        if not frame.no_node:
            yield (
                f"{frame.ref} has {frame.ready} of {max(frame.floor, 1)} Ready pods and nothing of it starts: look at "
                "the events of its pods"
            )
