"""The tables of a storm on a real control plane."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from rich.table import Table

from benchmarks.storms import bare
from benchmarks.storms.outcome import Outcome
from benchmarks.storms.scenario import NOTICE_SECONDS, ON_HEADROOM, PODS, headroom_nodes
from benchmarks.storms.times import HEADINGS, row, rows, spread
from plimsoll_testbed.measure.figures import percentile

_MIB = 1024 * 1024
_CORDON = f"bound: {bare.THREADS} threads that only cordon"
_DRAIN = f"bound: {bare.THREADS} threads that cordon, then evict all"


@dataclass(frozen=True, slots=True, kw_only=True)
class Runs:
    """All runs of one command."""

    nodes: int
    plimsoll: Sequence[Outcome]
    cordons: Sequence[Outcome]
    drains: Sequence[Outcome]

    @property
    def count(self) -> int:
        """How many there are."""
        return len(self.plimsoll) + len(self.cordons) + len(self.drains)


def tables(runs: Runs) -> Iterator[Table]:
    """Yield the tables, in the order in which they are read."""
    yield _cordoned(runs)
    yield _emptied(runs)
    yield _cost(runs)


def _cordoned(runs: Runs) -> Table:
    table = _table(f"{runs.nodes} spot nodes, {PODS} pods each, noticed at once", HEADINGS)
    for cells in rows([run.times for run in runs.plimsoll]):
        table.add_row(*cells)
    for name, outcomes in ((_CORDON, runs.cordons), (_DRAIN, runs.drains)):
        table.add_row(name, *row([(run.times.nodes, run.times.total) for run in outcomes]))
    ours = _slowest(runs.plimsoll, 0.99)
    bound = _slowest(runs.cordons, 1.0)
    if ours and bound:
        ratio = statistics.median(ours) / statistics.median(bound)
        table.caption = f"p99 is {ratio:.1f} times the whole time of the threads that only cordon"
    return table


def _emptied(runs: Runs) -> Table:
    headings = (*HEADINGS[:3], f"within {NOTICE_SECONDS} s", "pods left")
    table = _table("event to empty, of the nodes that became empty in time", headings)
    for name, outcomes in (("Plimsoll", runs.plimsoll), (_DRAIN, runs.drains)):
        cells = row([(run.times.nodes, run.in_time) for run in outcomes])
        table.add_row(name, *cells, _spread(outcomes, lambda run: run.left, "{:.0f}"))
    headroom = (
        f"room: {headroom_nodes(runs.nodes)} empty on-demand nodes for {ON_HEADROOM} pods each"
    )
    late = max((max(run.emptied, default=0.0) for run in runs.drains), default=0.0)
    table.caption = f"{headroom}; the bound's slowest node took {late:.0f} s"
    return table


def _cost(runs: Runs) -> Table:
    table = _table(
        "what it cost", ("Plimsoll", f"{bare.THREADS} threads, cordon", "cordon and evict")
    )
    columns = (runs.plimsoll, runs.cordons, runs.drains)
    methods = sorted({method for column in columns for run in column for method in run.calls})
    for method in methods:
        counted = [_spread(c, lambda run: run.calls[method], "{:,.0f}") for c in columns]  # noqa: B023 - used at once
        table.add_row(f"calls to the Kubernetes API: {method}", *counted)
    per_pod = [_spread(column, lambda run: run.calls_per_pod, "{:.1f}") for column in columns]
    table.add_row("calls to the Kubernetes API for each pod that left", *per_pod)
    for operation in sorted({name for run in runs.plimsoll for name in run.aws_calls}):
        counted = [_spread(runs.plimsoll, lambda run: run.aws_calls[operation], "{:,.0f}")]  # noqa: B023 - used at once
        table.add_row(f"calls to AWS: {operation}", *counted, "", "")
    for action in sorted({name for run in runs.plimsoll for name in run.done | run.undone}):
        table.add_row(f"actions: {action}", _actions(runs.plimsoll, action), "", "")
    for function in sorted({name for run in runs.plimsoll for name in run.memory}):
        table.add_row(f"memory of {function}", _memory(runs.plimsoll, function), "", "")
    watched = [_spread(c, lambda run: run.seen.changes, "{:,.0f}") for c in columns]
    table.add_row("changes that the watch saw", *watched)
    busy = [
        _spread(c, lambda run: run.seen.busy_seconds / run.seen.seconds, "{:.0%}") for c in columns
    ]
    table.add_row("of one processor, for that watch", *busy)
    table.add_row(
        "complaints", *(_spread(c, lambda run: len(run.complaints), "{:.0f}") for c in columns)
    )
    return table


def _actions(outcomes: Sequence[Outcome], action: str) -> str:
    done = _spread(outcomes, lambda run: run.done[action], "{:,.0f}")
    undone = _spread(outcomes, lambda run: run.undone[action], "{:,.0f}")
    return f"{done} done, {undone} refused"


def _memory(outcomes: Sequence[Outcome], function: str) -> str:
    peaks = [run.memory[function] for run in outcomes if function in run.memory]
    most = spread([peak.most / _MIB for peak in peaks], "{:.0f}".format)
    processes = max(peak.processes for peak in peaks)
    total = spread([peak.total / _MIB for peak in peaks], "{:.0f}".format)
    return f"{most} MiB at most, {total} MiB in {processes} that ever ran"


def _spread(outcomes: Sequence[Outcome], of: Callable[[Outcome], float], form: str) -> str:
    return spread([of(run) for run in outcomes], form.format)


def _slowest(outcomes: Sequence[Outcome], rank: float) -> list[float]:
    found = (percentile(run.times.total, rank) for run in outcomes)
    return [value for value in found if value is not None]


def _table(title: str, headings: Sequence[str]) -> Table:
    table = Table(title=title)
    table.add_column("median of the runs (least-most)")
    for heading in headings:
        table.add_column(heading, justify="right")
    return table
