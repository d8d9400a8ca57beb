"""The rows of a page: one for each workload and each node, with one cell for each responder."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from plimsoll_simulation.measure.history import NodeTrack
from plimsoll_simulation.measure.workload_metrics import WorkloadId
from plimsoll_simulation.output.page import charts
from plimsoll_simulation.output.page.charts import Lane, Plot
from plimsoll_simulation.output.page.marks import NodeId
from plimsoll_simulation.output.page.runs import Run
from plimsoll_simulation.output.page.scales import Scale
from plimsoll_simulation.output.tables import badness


class Words(NamedTuple):
    """A part of a caption; what is bad stands out."""

    text: str
    bad: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Cell:
    """What one responder's run has in a row."""

    responder: str
    caption: Sequence[Words]
    plot: Plot | None = None
    lane: Lane | None = None
    reasons: Sequence[str] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One row. Several instances of one run may have had the same node name."""

    title: str
    note: str = ""
    cells: Sequence[Sequence[Cell]]


def events(runs: Sequence[Run], scale: Scale) -> Row:
    """Return the marks of what is about no single workload."""
    cells = [
        Cell(
            responder=run.report["responder"],
            caption=[Words(f"{run.report['totals']['nodes_noticed']} nodes had notice")],
            lane=charts.lane(run.marks.elsewhere, scale, runs=len(runs)),
        )
        for run in runs
    ]
    return Row(title="Notices, capacity, faults", cells=[[cell] for cell in cells])


def workloads(runs: Sequence[Run], scale: Scale) -> Iterator[Row]:
    """Yield the workloads, the worst of all runs first."""
    found = dict.fromkeys(who for run in runs for who in run.workloads)

    def worst(who: WorkloadId) -> tuple[float, ...]:
        return max(badness(run.workloads[who]) for run in runs if who in run.workloads)

    clusters = {who[0] for who in found}
    for who in sorted(sorted(found), key=worst, reverse=True):
        cluster, namespace, kind, name = who
        title = f"{kind} {namespace}/{name}"
        row = next(run.workloads[who] for run in runs if who in run.workloads)
        replicas = "1 replica" if row["replicas"] == 1 else f"{row['replicas']} replicas"
        yield Row(
            title=f"{cluster} {title}" if len(clusters) > 1 else title,
            note=f"{replicas}, floor {row['ready_floor']}",
            cells=[[_workload(run, who, title, scale, runs)] for run in runs],
        )


def _workload(run: Run, who: WorkloadId, title: str, scale: Scale, runs: Sequence[Run]) -> Cell:
    row, responder = run.workloads.get(who), run.report["responder"]
    if row is None:
        return Cell(responder=responder, caption=[Words("was not there")])
    levels = [level for other in runs for level in other.history.levels.get(who, [])]
    return Cell(
        responder=responder,
        caption=_felt(row),
        plot=charts.workload_plot(
            run.history.levels[who],
            row,
            scale,
            end=run.report["seconds"],
            most=max(max(level.ready, level.replicas) for level in levels),
            who=f"{title} with {responder}",
        ),
        lane=charts.lane(run.marks.workloads.get(who, ()), scale, runs=len(runs)),
    )


def _felt(row: dict[str, Any]) -> list[Words]:
    lost, dark = row["ready_replica_seconds_lost"], row["seconds_at_zero"]
    words = [
        Words(f"lowest {row['min_ready']}", row["min_ready"] < row["ready_floor"]),
        Words(f"{lost:,.1f} ready-s lost", bool(lost)),
        Words(f"{dark:,.1f} s at zero", bool(dark)),
        Words(f"{row['pods_killed']} killed", bool(row["pods_killed"])),
    ]
    if row["pods_cut_short"]:
        words.append(Words(f"{row['pods_cut_short']} cut short", bad=True))
    if row["replaced_first"]:
        words.append(Words(f"{row['replaced_first']} replaced first"))
    return words


def nodes(runs: Sequence[Run], scale: Scale) -> Sequence[Row]:
    """Return the nodes: those with notice first, then those that joined or took pods."""
    return [
        _node(node, runs, scale) for node in dict.fromkeys(n for run in runs for n in run.nodes)
    ]


def _node(node: NodeId, runs: Sequence[Run], scale: Scale) -> Row:
    tracks = [track for run in runs for track in run.nodes.get(node, [])]
    most = max((load.pods for track in tracks for load in track.loads), default=1)
    return Row(
        title=f"Node {node[1]}",
        note=f"{tracks[0].group} of {node[0]}",
        cells=[
            [
                _track(run, track, scale, max(1, most), len(runs))
                for track in run.nodes.get(node, [])
            ]
            or [Cell(responder=run.report["responder"], caption=[Words("nothing to show")])]
            for run in runs
        ],
    )


def _track(run: Run, track: NodeTrack, scale: Scale, most: int, runs: int) -> Cell:
    row = run.rows.get(track.instance)
    marks = run.marks.nodes.get((track.cluster, track.name), [])
    return Cell(
        responder=run.report["responder"],
        caption=_fared(track, row),
        plot=charts.node_plot(track, row, scale, end=run.report["seconds"], most=most),
        lane=charts.lane(marks, scale, runs=runs),
        reasons=run.reasons.get(track.instance, ()),
    )


def _fared(track: NodeTrack, row: dict[str, Any] | None) -> list[Words]:
    if row is None:
        if not track.launched:
            return [Words("no notice")]
        ready = "no node yet" if track.joined is None else f"a node at {track.joined:g} s"
        return [Words(f"new: launched at {track.launched:g} s, {ready}")]
    noticed = row["noticed"]
    words = [Words("no notice" if noticed is None else f"{row['notice']} at {noticed:g} s")]
    for name in ("cordoned", "empty", "gone"):
        moment = row[name]
        words.append(Words(f"{name} never" if moment is None else f"{name} {moment:g} s"))
    return [*words, Words(f"{row['pods_killed']} killed", bool(row["pods_killed"]))]
