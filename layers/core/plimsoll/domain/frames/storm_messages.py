"""The message that a storm begins: one, to the people who watch."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from plimsoll.domain.frames.frame import Frame, FrameCounts

_LONGEST_NAME: Final = 50
"""Characters of a cluster's name in a subject, of which SNS takes 100."""


def is_storm(frame: Frame) -> bool:
    """Whether people are told: several nodes go within two minutes, or pods of a single node are not safe."""
    return frame.nodes_of > 1 or bool(frame.counts.at_risk or frame.counts.no_node)


def storm_message(frame: Frame, console: str) -> tuple[str, str]:
    """Return subject and text of the message.

    Args:
        frame: the first of the storm that asks for a message.
        console: address of the hosted console; empty: there is none.
    """
    nodes = "1 node goes" if frame.nodes_of == 1 else f"{frame.nodes_of} nodes go"
    return f"{frame.cluster[:_LONGEST_NAME]}: {nodes}", "\n".join(_lines(frame, nodes, console))


def _lines(frame: Frame, nodes: str, console: str) -> Iterator[str]:
    where = f" in {', '.join(frame.zones)}" if frame.zones else ""
    yield f"{frame.cluster}: {nodes}{where}, noticed since {frame.storm:%Y-%m-%d %H:%M:%SZ}."
    if frame.deadline is not None:
        yield f"The first instance goes in {max(0.0, frame.deadline - frame.seconds):.0f} s."
    yield f"{frame.counts.of} pods must move: {', '.join(_states(frame.counts))}."
    yield _task(frame)
    if console:
        yield f"Watch it: {console.rstrip('/')}/c/{frame.cluster}/storm"
    else:
        yield f"Watch it: plimsoll status --cluster {frame.cluster}"


def _states(counts: FrameCounts) -> Iterator[str]:
    yield f"{counts.safe} are replaced"
    for count, words in (
        (counts.starting, "start elsewhere"),
        (counts.no_node, "wait for a node"),
        (counts.not_begun, "wait for their turn"),
        (counts.at_risk, "are at risk"),
        (counts.killed, "were killed"),
    ):
        if count:
            yield f"{count} {words}"


def _task(frame: Frame) -> str:
    task = frame.task
    if task.acts:
        return "Do: " + "; ".join(task.acts) + "."
    if not task.waiting:
        return "You need not do anything."
    when = f", the next in {task.next_at - frame.seconds:.0f} s" if task.next_at else ""
    return f"You need not do anything yet: {task.nodes_coming} nodes come{when}."
