"""The storm: will every pod be off before the deadline, and what must I do?"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Literal

from plimsoll_console.drawing import clock
from plimsoll_console.pages import NOTHING_NEW, Page, Request, missing
from plimsoll_console.sources import ClusterState, Rehearsal, Source
from plimsoll_console.views.words import counted, split_ref

if TYPE_CHECKING:  # the first page does not wait for what it never needs
    from plimsoll.domain.frames import Frame, NodeFrame, WorkloadFrame

MOST_OPEN = 8
"""Workloads up to which those that are safe or not begun stay unfolded, and nodes up to which empty ones do."""
POLL_MS = 2000
MOST_NODES = 12
BEFORE = timedelta(seconds=2)

type Level = Literal["ok", "warn", "bad"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One workload."""

    frame: WorkloadFrame
    kind: str
    namespace: str
    name: str
    word: str
    level: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Shown:
    """Which frame is shown, and when that is."""

    frame: Frame
    seconds: float
    replay: bool
    late: float | None
    """By how many seconds the next frame is late; None: it is not."""


def storm(request: Request, source: Source) -> Page:
    """Show the storm of a cluster: live, or as it was at `?at=` seconds after its first notice."""
    state = source.state(request.named["cluster"])
    if state is None:
        return missing(f"There is no cluster {request.named['cluster']}.")
    shown = _shown(request, state, source)
    if shown is None:
        if request.fragment and request.query.get("seen") == "0":
            return NOTHING_NEW
        return Page(template="storm_none.html.j2", given=_calm(state, source))
    frame = shown.frame
    ended = frame.over or (source.ended and not shown.replay)
    token = f"{frame.number}{'-late' if shown.late else ''}{'-end' if ended else ''}"
    if request.fragment and not shown.replay and request.query.get("seen") == token:
        return NOTHING_NEW
    rows = [_row(each) for each in frame.workloads]
    settled = [row for row in rows if row.frame.settled] if len(rows) > MOST_OPEN else []
    waiting = [row for row in rows if row.level == "idle"] if len(rows) > MOST_OPEN else []
    words, level = verdict(frame, ended=ended)
    return Page(
        template="storm.html.j2",
        fragment="storm_live.html.j2",
        given={
            "cluster": state.name,
            "here": "storm",
            "frame": frame,
            "shown": shown,
            "ended": ended,
            "finished": ended or source.ended,
            "seen": token,
            "verdict": words,
            "level": level,
            "task": task_words(frame, shown.seconds, ended=ended),
            "rows": [row for row in rows if row not in settled and row not in waiting],
            "waiting": waiting,
            "settled": settled,
            "nodes": _nodes(frame),
            "last": _first_and_last(state.frames, frame)[1],
            "now_ms": _milliseconds(frame.storm + timedelta(seconds=shown.seconds)),
            "speed": source.speed,
            "poll_ms": max(400, round(POLL_MS / source.speed)),
            "predicted": _predicted(source.rehearsals(state.name), frame),
        },
    )


def verdict(frame: Frame, *, ended: bool) -> tuple[str, Level]:  # noqa: PLR0911 - the worst first
    """Return the state of a storm in one sentence, the worst first: by workloads, not by pods."""
    counts = frame.counts
    safe = f"{counts.safe} of {counts.of} pods are safe."
    if counts.killed:
        return f"{counted(counts.killed, 'pod was', 'pods were')} killed. {safe}", "bad"
    if counts.at_zero:
        return f"{counted(counts.at_zero, 'workload is', 'workloads are')} at zero. {safe}", "bad"
    if counts.below_floor:
        below = counted(counts.below_floor, "workload is", "workloads are")
        return f"{below} below the ready floor. {safe}", "bad"
    if counts.no_node and frame.task.acts:
        return (
            f"{counted(counts.no_node, 'pod has', 'pods have')} no node, and none comes. {safe}",
            "bad",
        )
    if counts.at_risk:
        risky = counted(counts.at_risk, "pod reaches its", "pods reach their")
        return f"{risky} deadline before a replacement has a node. {safe}", "warn"
    low = sum(w.serves and w.lowest < min(w.floor, w.replicas) for w in frame.workloads)
    floors = (
        f"{counted(low, 'workload was', 'workloads were')} below the ready floor for a while."
        if low
        else "Every floor held."
        if ended
        else "Every floor holds."
    )
    if counts.safe >= counts.of:
        return f"All {counts.of} pods are safe. {floors}", "warn" if low else "ok"
    parts = [
        f"{counts.starting} start{'s' * (counts.starting == 1)}" if counts.starting else "",
        f"{counts.no_node} wait{'s' * (counts.no_node == 1)} for a node" if counts.no_node else "",
        f"{counts.not_begun} wait{'s' * (counts.not_begun == 1)} for {'its' if counts.not_begun == 1 else 'their'} turn"
        if counts.not_begun
        else "",
    ]
    under_way = " and ".join(filter(None, parts))
    return f"{safe} {under_way}. {floors}", "warn" if low else "ok"


def task_words(frame: Frame, seconds: float, *, ended: bool) -> tuple[str, str]:
    """Return the heading and the words of what the person must do; its acts stand in the frame."""
    task = frame.task
    if task.acts:
        return "You:", ""
    if task.waiting:
        if not task.nodes_coming:
            return "You: nothing yet.", "Replacements start on nodes that are there."
        words = f"{counted(task.nodes_coming, 'node comes', 'nodes come')}"
        if task.next_at is not None and task.next_at > seconds:
            words += f", the next in {round(task.next_at - seconds)} s"
        return "You: nothing yet.", f"{words}."
    if ended:
        return "You: nothing.", "Plimsoll has nothing left to do here."
    if turn := frame.counts.not_begun:
        waits = f"{counted(turn, 'pod waits for its', 'pods wait for their')} turn"
        return "You: nothing.", f"Every workload keeps its floor, and {waits}."
    return "You: nothing.", "Every replacement has a node, and every workload keeps its floor."


def workload_word(frame: WorkloadFrame) -> tuple[str, str]:
    """Return the state of a workload in a word, and how bad it is: the worst that is so."""
    states = (
        (frame.at_zero, "at zero", "bad"),
        (frame.below_floor, "below floor", "bad"),
        (frame.killed, f"{frame.killed} killed", "bad"),
        (frame.at_risk, "deadline near", "warn"),
        (frame.no_node, "needs a node", "go"),
        (frame.starting, f"{frame.starting} starting", "go"),
        (frame.not_begun, "its turn comes", "idle"),
    )
    return next(((word, level) for so, word, level in states if so), ("safe", "ok"))


def _shown(request: Request, state: ClusterState, source: Source) -> Shown | None:
    latest = state.latest
    if latest is None:
        return None
    at = request.number("at")
    if at is not None:
        found = [
            frame for frame in state.frames if frame.storm == latest.storm and frame.seconds <= at
        ]
        frame = found[-1] if found else _first_and_last(state.frames, latest)[0]
        return Shown(frame=frame, seconds=max(at, frame.seconds), replay=True, late=None)
    seconds = max(latest.seconds, (source.now() - latest.storm).total_seconds())
    late = None
    if latest.next_by is not None and not source.ended and source.now() > latest.next_by:
        late = (source.now() - latest.at).total_seconds()
    if source.ended or latest.over:
        seconds = latest.seconds
    return Shown(frame=latest, seconds=seconds, replay=False, late=late)


def _predicted(rehearsals: Sequence[Rehearsal], frame: Frame) -> tuple[tuple[float, int], ...]:
    """Return the safe pods over time of the last rehearsal of just these nodes, made before they were noticed."""
    going = {node.name for node in frame.nodes}
    same = (
        each
        for each in rehearsals
        if each.stage == "done" and each.nodes == going and each.at <= frame.storm + BEFORE
    )
    return next((each.safe for each in same), ())


def _first_and_last(frames: Sequence[Frame], frame: Frame) -> tuple[Frame, Frame]:
    """Return the first and the last frame of a storm."""
    same = [each for each in frames if each.storm == frame.storm]
    return same[0], same[-1]


def _calm(state: ClusterState, source: Source) -> dict[str, object]:
    return {
        "cluster": state.name,
        "here": "storm",
        "state": state,
        "source": source,
        "poll_ms": max(400, round(POLL_MS / source.speed)),
    }


def _row(frame: WorkloadFrame) -> Row:
    word, level = workload_word(frame)
    kind, namespace, name = split_ref(frame.ref)
    return Row(frame=frame, kind=kind, namespace=namespace, name=name, word=word, level=level)


def _nodes(frame: Frame) -> list[NodeFrame]:
    if len(frame.nodes) <= MOST_OPEN:
        return [*frame.nodes]
    return [node for node in frame.nodes if not node.empty or node.killed][:MOST_NODES]


def node_word(node: NodeFrame) -> tuple[str, str]:
    """Return the state of a node in a word, and how bad it is."""
    if node.killed:
        return f"{node.killed} killed", "bad"
    if node.left and node.gone is None:
        return f"{node.left} left", ""
    if node.emptied is not None:
        return f"empty, {clock(node.emptied)}", ""
    return ("gone" if node.gone is not None else "empty"), ""


def _milliseconds(time: datetime) -> int:
    return round(time.timestamp() * 1000)
