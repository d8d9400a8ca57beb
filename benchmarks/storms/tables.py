"""The tables of a storm on a real control plane."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from rich.table import Table

from benchmarks.output import table
from benchmarks.storms.cordon_times import HEADINGS, rows, seconds, spread
from benchmarks.storms.outcome import Outcome
from benchmarks.storms.scenario import (
    AFTER_SECONDS,
    NOTICE_SECONDS,
    ON_HEADROOM,
    PODS,
    headroom_nodes,
)
from plimsoll_simulation.measure.figures import percentile

PLIMSOLL = "Plimsoll"
OF_RUNS = "median of the runs (least-most)"
_MIB = 1024 * 1024


@dataclass(frozen=True, slots=True, kw_only=True)
class Runs:
    """All runs of one command."""

    nodes: int
    rates: str
    of: Mapping[str, Sequence[Outcome]]
    """Who reacted -> what came of it."""

    @property
    def count(self) -> int:
        """How many there are."""
        return sum(map(len, self.of.values()))


def tables(runs: Runs) -> Iterator[Table]:
    """Yield the tables, in the order in which they are read."""
    yield _results(runs)
    yield _cordoned(runs)
    yield _cost(runs)


_RESULTS: Final = (
    "cordoned",
    "p99",
    f"empty within {NOTICE_SECONDS} s",
    "pods killed",
    "ready-replica-seconds lost until the instances went",
    f"in the {AFTER_SECONDS} s after",
    "requests lost until then",
    "after",
    "calls for each pod moved",
)


def headings(nodes: int, rates: str) -> Iterator[str]:
    """Yield the first lines of a table of docs/develop/performance.md."""
    heads = (f"{nodes} nodes, {rates}", *_RESULTS)
    yield "| " + " | ".join(heads) + " |"
    yield "|---" * len(heads) + "|"


def line(name: str, outcomes: Sequence[Outcome]) -> str:
    """Return the line of somebody who reacted."""
    return "| " + " | ".join((name, *_cells(outcomes))) + " |"


def _results(runs: Runs) -> Table:
    title = f"{runs.nodes} spot nodes, {PODS} pods each, noticed at once; {runs.rates}"
    shown = table(title, OF_RUNS, *_RESULTS)
    for name, outcomes in runs.of.items():
        shown.add_row(name, *_cells(outcomes))
    shown.caption = (
        f"headroom: {headroom_nodes(runs.nodes)} empty on-demand nodes for {ON_HEADROOM} pods each"
    )
    return shown


def _cells(outcomes: Sequence[Outcome]) -> Iterator[str]:
    yield _spread(outcomes, lambda run: len(run.times.total) / run.times.nodes, "{:.0%}")
    yield spread([t for run in outcomes if (t := percentile(run.times.total, 0.99))], seconds)
    yield _spread(outcomes, lambda run: len(run.in_time) / run.times.nodes, "{:.0%}")
    yield _spread(outcomes, lambda run: run.killed, "{:,.0f}")
    yield _spread(outcomes, lambda run: run.lost, "{:,.0f}")
    yield _spread(outcomes, lambda run: run.lost_after, "{:,.0f}")
    yield _spread(outcomes, lambda run: run.requests_lost, "{:,.0f}")
    yield _spread(outcomes, lambda run: run.requests_lost_after, "{:,.0f}")
    yield _spread(outcomes, lambda run: run.calls_per_pod, "{:.1f}")


def _cordoned(runs: Runs) -> Table:
    shown = table(f"the time to the cordon, {PLIMSOLL}", OF_RUNS, *HEADINGS)
    for cells in rows([run.times for run in runs.of.get(PLIMSOLL, ())]):
        shown.add_row(*cells)
    return shown


def _cost(runs: Runs) -> Table:
    shown = table("what it cost", OF_RUNS, *runs.of)
    columns = list(runs.of.values())

    def add(name: str, of: Callable[[Outcome], float], form: str = "{:,.0f}") -> None:
        shown.add_row(name, *(_spread(column, of, form) for column in columns))

    for method in sorted({method for column in columns for run in column for method in run.calls}):
        add(f"calls to the Kubernetes API: {method}", lambda run: run.calls[method])  # noqa: B023 - used at once
    add("changes that the watch saw", lambda run: run.seen.changes)
    add(
        "of one processor, for that watch",
        lambda run: run.seen.busy_seconds / run.seen.seconds,
        "{:.0%}",
    )
    add("requests", lambda run: run.seen.requests)
    add("processors, for functions and emulator", lambda run: run.cores, "{:.2f}")
    ours = runs.of.get(PLIMSOLL, ())
    blank = [""] * (len(columns) - 1)
    for operation in sorted({name for run in ours for name in run.aws_calls}):
        counted = _spread(ours, lambda run: run.aws_calls[operation], "{:,.0f}")  # noqa: B023 - used at once
        shown.add_row(f"calls to AWS: {operation}", counted, *blank)
    for action in sorted({name for run in ours for name in run.done | run.undone}):
        shown.add_row(f"actions: {action}", _actions(ours, action), *blank)
    for function in sorted({name for run in ours for name in run.memory}):
        shown.add_row(f"memory of {function}", _memory(ours, function), *blank)
    add("complaints", lambda run: len(run.complaints))
    return shown


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
