"""The parts of a page that are words and tables: verdict, totals, capacity, reasons, what was done."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final
from xml.etree import ElementTree as ET

from plimsoll_testbed.measure.report import Report
from plimsoll_testbed.measure.sentences import routine
from plimsoll_testbed.output.page.elements import Child, el, table
from plimsoll_testbed.output.page.runs import Run
from plimsoll_testbed.scenario.problems import listed

LINES: Final = 3000
"""Of what was said in one drill; a page with more would be slow to read in every sense."""
OPEN: Final = 40
"""Up to so many rows a list is open at first."""

_TOTALS: Final[Mapping[str, tuple[str, str]]] = {
    "ready_replica_seconds_lost": ("Ready-replica-seconds lost", ""),
    "pods_killed": ("Pods killed with their node", ""),
    "pods_cut_short": ("Pods cut short", ""),
    "workloads_at_zero": ("Workloads with nothing Ready", ""),
    "seconds_at_zero": ("Time with nothing Ready", " s"),
    "seconds_below_floor": ("Time below the ready floor", " s"),
    "seconds_below_replicas": ("Time short of replicas", " s"),
}
"""What should be 0."""


def verdicts(runs: Sequence[Run]) -> ET.Element:
    """Return what the expectations of the scenario say."""
    return el("div", {"class": "cells"}, *(_verdict(run.report) for run in runs))


def _verdict(report: Report) -> ET.Element:
    held, failures = report["expect"]["held"], report["expect"]["failures"]
    if held is None:
        style, sign, told = "unjudged", "", "Measured only: expectations are about plimsoll"
    elif held:
        style, sign, told = "held", "✓", "Every expectation held"
    else:
        style, sign, told = "failed", "✗", f"{len(failures)} not as expected"
    end = "settled" if report["settled"] else "not settled"
    card = el(
        "div",
        {"class": f"verdict {style}"},
        el("h3", {}, report["responder"]),
        el(
            "p",
            {"class": "word"},
            el("span", {"aria-hidden": "true"}, f"{sign} ") if sign else None,
            told,
        ),
    )
    if failures:
        card.append(el("ul", {}, *(el("li", {}, failure) for failure in failures)))
    card.append(el("p", {"class": "end"}, f"{end} after {report['seconds']:g} s"))
    return card


def totals(runs: Sequence[Run]) -> ET.Element:
    """Return the totals, one column for each responder."""
    return table(
        "All workloads and nodes",
        ["", *(run.report["responder"] for run in runs)],
        _totals([run.report["totals"] for run in runs]),
    )


def _totals(columns: Sequence[Mapping[str, Any]]) -> Iterator[Sequence[Child]]:
    for name, (words, unit) in _TOTALS.items():
        most = max(column[name] for column in columns)
        yield [words, *(_figure(column[name], unit, most) for column in columns)]
    yield ["Nodes with notice", *(str(column["nodes_noticed"]) for column in columns)]
    yield ["Nodes cordoned", *(str(column["nodes_cordoned"]) for column in columns)]
    yield ["Cordoned after", *(_spread(column, "cordon_after") for column in columns)]
    yield ["Empty after", *(_spread(column, "empty_after") for column in columns)]
    yield ["Cost, against all on demand", *(_share(column) for column in columns)]


def _figure(value: Any, unit: str, most: Any) -> ET.Element:
    text = f"{value:,.1f}" if isinstance(value, float) else f"{value:,}"
    share = 100 * value / most if most else 0
    return el(
        "span",
        {"class": "figure bad" if value else "figure"},
        el("span", {"class": "bar", "style": f"width:{share:.1f}%", "aria-hidden": "true"}),
        el("span", {"class": "number"}, f"{text}{unit}"),
    )


def _spread(column: Mapping[str, Any], name: str) -> str:
    middle, most = column[f"{name}_p50"], column[f"{name}_p99"]
    if middle is None:
        return "never"
    return f"{middle:g} s" if middle == most else f"{middle:g} s, the slowest {most:g} s"


def _share(column: Mapping[str, Any]) -> str:
    cost = column["cost_vs_all_on_demand"]
    return "no node ran" if cost is None else f"{cost:.0%}"


def capacity(run: Run) -> ET.Element:
    """Return what the node groups did."""
    return table(
        f"Node groups, {run.report['responder']}",
        ["group", "capacity", "first asked", "nodes added", "peak", "node hours"],
        (
            [
                f"{row['cluster']} {row['group']}",
                row["capacity"],
                "never" if row["first_asked"] is None else f"{row['first_asked']:g} s",
                str(row["nodes_added"]),
                str(row["peak"]),
                f"{row['node_hours']:g}",
            ]
            for row in run.report["capacity"]
        ),
    )


def done(run: Run) -> ET.Element:
    """Return all that was said, in order."""
    lines = [line for line in run.history.lines if not routine(line.what)]
    rows: list[Iterable[Child]] = [[f"{line.seconds:.1f} s", line.what] for line in lines[:LINES]]
    if len(lines) > LINES:
        rows.append(["later", f"and {len(lines) - LINES} more lines"])
    return _folded(
        f"What was done, {run.report['responder']}: {len(lines)} lines",
        table(f"What was done, {run.report['responder']}", ["at", "what"], rows),
        is_open=len(lines) <= OPEN,
    )


def reasons(run: Run) -> ET.Element | None:
    """Return every reason that was reported, once, with the interruptions that it is about."""
    names = {track.instance: track.name for track in run.history.nodes.values()}
    about: dict[str, list[str]] = {}
    for report in run.report["reports"]:
        instance = report["interruption"].partition("@")[0]
        for reason in report["reasons"]:
            about.setdefault(reason, []).append(names.get(instance, report["interruption"]))
    if not about:
        return None
    whole = len(run.report["reports"])
    rows = [
        [reason, f"all {whole}" if len(who) == whole > 1 else listed(sorted(who))]
        for reason, who in about.items()
    ]
    return _folded(
        f"Reasons in the reports, {run.report['responder']}: {len(about)}",
        table(
            f"Reasons in the reports, {run.report['responder']}", ["reason", "interruptions"], rows
        ),
        is_open=len(rows) <= OPEN,
    )


def _folded(summary: str, body: ET.Element, *, is_open: bool) -> ET.Element:
    return el("details", {"open": True if is_open else None}, el("summary", {}, summary), body)
