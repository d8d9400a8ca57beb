"""The rows of a page: one for each workload and each node, with one cell for each responder."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Final
from xml.etree import ElementTree as ET

from plimsoll_testbed.measure.history import NodeTrack
from plimsoll_testbed.measure.workload_metrics import WorkloadId
from plimsoll_testbed.output.page import charts
from plimsoll_testbed.output.page.elements import Child, add, el
from plimsoll_testbed.output.page.marks import NodeId
from plimsoll_testbed.output.page.runs import Run
from plimsoll_testbed.output.page.scales import Scale
from plimsoll_testbed.output.tables import badness

WHY: Final = 12
"""Reasons that are shown with a node; all of them stand in the list of reasons."""
SHOWN: Final = 40
"""Nodes that are drawn openly; more are folded away at first."""


def _row(heading: ET.Element, cells: Iterable[ET.Element]) -> ET.Element:
    return el("article", {"class": "row"}, heading, el("div", {"class": "cells"}, *cells))


def _cell(run: Run, caption: Child, *parts: Child) -> ET.Element:
    who = el("span", {"class": "who"}, f"{run.report['responder']}: ")
    return el("figure", {}, el("figcaption", {}, who, caption), *parts)


def events(runs: Sequence[Run], scale: Scale) -> ET.Element:
    """Return the marks of what is about no single workload."""
    return _row(
        el("h3", {}, "Notices, capacity, faults"),
        (
            _cell(
                run,
                f"{run.report['totals']['nodes_noticed']} nodes had notice",
                charts.lane(run.marks.elsewhere, scale, runs=len(runs)),
                charts.axis(scale),
            )
            for run in runs
        ),
    )


def workloads(runs: Sequence[Run], scale: Scale) -> Iterable[ET.Element]:
    """Return the workloads, the worst of all runs first."""
    found = dict.fromkeys(who for run in runs for who in run.workloads)

    def worst(who: WorkloadId) -> tuple[float, ...]:
        return max(badness(run.workloads[who]) for run in runs if who in run.workloads)

    clusters = {who[0] for who in found}
    for who in sorted(sorted(found), key=worst, reverse=True):
        cluster, namespace, kind, name = who
        title = f"{kind} {namespace}/{name}"
        row = next(run.workloads[who] for run in runs if who in run.workloads)
        heading = el(
            "h3",
            {},
            f"{cluster} {title}" if len(clusters) > 1 else title,
            el("small", {}, _size(row)),
        )
        yield _row(heading, [_workload(run, who, title, scale, runs) for run in runs])


def _size(row: dict[str, Any]) -> str:
    replicas = "1 replica" if row["replicas"] == 1 else f"{row['replicas']} replicas"
    return f"{replicas}, floor {row['ready_floor']}"


def _workload(
    run: Run, who: WorkloadId, title: str, scale: Scale, runs: Sequence[Run]
) -> ET.Element:
    row = run.workloads.get(who)
    if row is None:
        return _cell(run, "was not there")
    most = max(
        max(level.ready, level.replicas)
        for other in runs
        for level in other.history.levels.get(who, [])
    )
    plot = charts.workload_plot(
        run.history.levels[who],
        row,
        scale,
        end=run.report["seconds"],
        most=most,
        who=f"{title} with {run.report['responder']}",
    )
    marks = charts.lane(run.marks.workloads.get(who, ()), scale, runs=len(runs))
    return _cell(run, _felt(row), plot, charts.axis(scale), marks)


def _felt(row: dict[str, Any]) -> ET.Element:
    low = row["min_ready"] < row["ready_floor"]
    told = el(
        "span",
        {},
        el("span", {"class": "bad" if low else None}, f"lowest {row['min_ready']}"),
    )
    lost = row["ready_replica_seconds_lost"]
    figures = (
        (lost, f"{lost:,.1f} ready-s lost"),
        (row["seconds_at_zero"], f"{row['seconds_at_zero']:,.1f} s at zero"),
        (row["pods_killed"], f"{row['pods_killed']} killed"),
        (row["pods_cut_short"], f"{row['pods_cut_short']} cut short"),
    )
    for value, words in figures[:3] if not row["pods_cut_short"] else figures:
        add(told, " · ", el("span", {"class": "bad" if value else None}, words))
    if row["replaced_first"]:
        add(told, f" · {row['replaced_first']} replaced first")
    return told


def nodes(runs: Sequence[Run], scale: Scale) -> Iterable[ET.Element]:
    """Return the nodes: those with notice first, then those that joined or took pods."""
    found = dict.fromkeys(node for run in runs for node in run.nodes)
    rows = [_node(node, runs, scale) for node in found]
    yield from rows[:SHOWN]
    if len(rows) > SHOWN:
        summary = el("summary", {}, f"{len(rows) - SHOWN} more nodes")
        yield el("details", {}, summary, *rows[SHOWN:])


def _node(node: NodeId, runs: Sequence[Run], scale: Scale) -> ET.Element:
    tracks = [track for run in runs for track in run.nodes.get(node, [])]
    most = max((load.pods for track in tracks for load in track.loads), default=1)
    heading = el(
        "h3",
        {},
        f"Node {node[1]}",
        el("small", {}, f"{tracks[0].group} of {node[0]}"),
    )
    return _row(heading, [_tracks(run, node, scale, max(1, most), len(runs)) for run in runs])


def _tracks(run: Run, node: NodeId, scale: Scale, most: int, runs: int) -> ET.Element:
    """Return all instances that had the name of a node in a run; almost always it is one."""
    match [_track(run, track, scale, most, runs) for track in run.nodes.get(node, [])]:
        case []:
            return _cell(run, "nothing to show")
        case [one]:
            return one
        case several:
            return el("div", {}, *several)


def _track(run: Run, track: NodeTrack, scale: Scale, most: int, runs: int) -> ET.Element:
    row = run.rows.get(track.instance)
    marks = run.marks.nodes.get((track.cluster, track.name), [])
    return _cell(
        run,
        el("span", {}, _fared(track, row), _why(run.reasons.get(track.instance, ()))),
        charts.node_plot(track, row, scale, end=run.report["seconds"], most=most),
        charts.axis(scale),
        charts.lane(marks, scale, runs=runs),
    )


def _fared(track: NodeTrack, row: dict[str, Any] | None) -> ET.Element:
    if row is None:
        told = "no notice"
        if track.launched:
            ready = "no node yet" if track.joined is None else f"a node at {track.joined:g} s"
            told = f"new: launched at {track.launched:g} s, {ready}"
        return el("span", {}, told)
    words = [
        f"{row['notice']} at {row['noticed']:g} s" if row["noticed"] is not None else "no notice"
    ]
    for name in ("cordoned", "empty", "gone"):
        moment = row[name]
        words.append(f"{name} never" if moment is None else f"{name} {moment:g} s")
    killed = row["pods_killed"]
    bad = el("span", {"class": "bad" if killed else None}, f"{killed} killed")
    return el("span", {}, " · ".join(words), " · ", bad)


def _why(reasons: Sequence[str]) -> ET.Element | None:
    """Return a button that tells what was reported of a node."""
    if not reasons:
        return None
    lines = [*reasons[:WHY]]
    if len(reasons) > WHY:
        lines.append(f"and {len(reasons) - WHY} more, in the list of reasons")
    return el(
        "button",
        {"type": "button", "class": "why"},
        f"{len(reasons)} reasons",
        el("span", {"class": "tip"}, *(el("span", {"class": "line"}, line) for line in lines)),
    )
