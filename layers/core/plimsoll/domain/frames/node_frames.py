"""The nodes of a frame, and what was done, in words."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import replace
from datetime import timedelta
from typing import Final

from plimsoll.domain.actions import Action, Cordon, Evict, ForceDelete, Grow, Release, Wave
from plimsoll.domain.frames.frame import MOST_LINES, LineFrame, NodeFrame
from plimsoll.domain.frames.workload_frames import Scene
from plimsoll.domain.kubernetes import INSTANCE_TYPE

_LAST: Final = timedelta(days=365).total_seconds()


def node_frames(scene: Scene, before: Sequence[NodeFrame]) -> list[NodeFrame]:
    """Return the nodes that go or went: those that hold pods first, by deadline."""
    known = {frame.name: frame for frame in before}
    for node in scene.interrupted.nodes:
        found, was = scene.interrupted.interruption[node.name], known.get(node.name)
        off = node.name in scene.gone
        left = len(scene.left[node.name])
        gone = scene.seconds(found.gone)
        if gone is None:
            gone = was.gone if was and was.gone is not None else scene.second if off else None
        report = next((r for r in scene.plan.reports if r.node == node.name), None)
        killed = len(report.killed) if report else 0
        known[node.name] = NodeFrame(
            name=node.name,
            zone=node.zone or "",
            type=node.labels.get(INSTANCE_TYPE, ""),
            noticed=scene.seconds(found.noticed) or 0.0,
            deadline=scene.seconds(found.deadline),
            cordoned=scene.seconds(found.cordoned),
            emptied=scene.seconds(found.emptied),
            gone=gone,
            had=max(left, was.had if was else 0),
            left=0 if off else left,
            killed=max(killed, was.killed if was else 0),
        )
    for name, frame in known.items():
        if name not in scene.interrupted.names and frame.gone is None:
            # Its Node was deleted, or it stays after all: in either case nothing has to leave it.
            known[name] = replace(frame, gone=scene.second, left=0)
    return sorted(known.values(), key=_order)


def lines_with(
    before: Sequence[LineFrame], done: Iterable[Action], second: float
) -> tuple[LineFrame, ...]:
    """Return what was done so far, with what was just carried out."""
    counts: Counter[tuple[str, str]] = Counter()
    for action in done:
        match action:
            case Cordon():
                counts["Cordoned", "node"] += 1
            case Grow(group=group, add=add):
                counts[f"Requested of {group.name}", "node"] += add
            case Release():
                counts["Began to replace", "pod"] += 1
            case Evict(wave=Wave.DEADLINE):
                counts["Evicted at their deadline", "pod"] += 1
            case Evict():
                counts["Evicted, replacement Ready", "pod"] += 1
            case ForceDelete():
                counts["Freed from gone instances", "pod"] += 1
            case _:
                pass
    lines = [
        LineFrame(seconds=second, words=f"{verb}: {count} {what}{'s' * (count != 1)}")
        for (verb, what), count in counts.items()
    ]
    return (*before, *lines)[-MOST_LINES:]


def _order(frame: NodeFrame) -> tuple[bool, bool, float, str]:
    deadline = _LAST if frame.deadline is None else frame.deadline
    return not frame.killed, frame.empty, deadline, frame.name
