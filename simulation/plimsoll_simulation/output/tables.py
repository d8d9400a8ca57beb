"""Reports as tables for a terminal: the worst workload stands first."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from rich.box import SIMPLE_HEAD
from rich.table import Table
from rich.text import Text

from plimsoll_simulation.measure.report import Report

_BAD, _GOOD = "bold red", "green"

type EquivalenceGroup = dict[str, Any]


def workloads_table(report: Report) -> Table:
    """Return one report's workloads, worst first."""
    table = Table(title=f"{report['drill']} · {report['rig']} · {report['responder']}")
    table.add_column("workload", overflow="fold")
    for heading in ("ready", "floor", "lowest", "below floor", "at zero", "ready-s lost"):
        table.add_column(heading, justify="right")
    for heading in ("killed", "cut short", "evicted", "replaced first"):
        table.add_column(heading, justify="right")
    for row in sorted(report["workloads"], key=badness, reverse=True):
        low = row["min_ready"] < row["ready_floor"]
        table.add_row(
            _name(row, report),
            str(row["replicas"]),
            str(row["ready_floor"]),
            Text(str(row["min_ready"]), style=_BAD if low else _GOOD),
            _seconds(row["seconds_below_floor"], " s"),
            _seconds(row["seconds_at_zero"], " s"),
            _seconds(row["ready_replica_seconds_lost"]),
            _count(row["pods_killed"]),
            _count(row["pods_cut_short"]),
            str(row["pods_evicted"]),
            str(row["replaced_first"]),
        )
    return table


def comparison_table(reports: Sequence[Report], *, narrow: bool = False) -> Table:
    """Return what each workload felt under each responder, worst first, and the totals.

    Args:
        reports: of the same scenario; each gives three columns.
        narrow: for a terminal of 80 columns: the same figures without lines and long names.
    """
    title = str(reports[0]["drill"]) if reports else None
    if narrow:
        table = Table(title=title, box=SIMPLE_HEAD, padding=(0, 1, 0, 0), pad_edge=False)
    else:
        table = Table(title=title)
    table.add_column("workload", overflow="fold")
    for report in reports:
        who = report["responder"]
        table.add_column(f"{who}\n{'lost' if narrow else 'ready-s lost'}", justify="right")
        table.add_column("\nat zero" if narrow else f"{who}\nat zero", justify="right")
        table.add_column("\nkilled" if narrow else f"{who}\nkilled", justify="right")
    rows: dict[tuple[str, ...], dict[int, EquivalenceGroup]] = {}
    for i, report in enumerate(reports):
        for row in report["workloads"]:
            key = (row["cluster"], row["namespace"], row["kind"], row["name"])
            rows.setdefault(key, {})[i] = row
    worst = sorted(
        rows.items(), key=lambda item: (max(map(badness, item[1].values())), item[0]), reverse=True
    )
    for _, by_report in worst:
        row = next(iter(by_report.values()))
        cells: list[Text | str] = [_short(row, reports[0]) if narrow else _name(row, reports[0])]
        for i in range(len(reports)):
            cells += _three(by_report.get(i))
        table.add_row(*cells)
    table.add_section()
    totals: list[Text | str] = [Text("in all" if narrow else "all workloads", style="bold")]
    for report in reports:
        totals += _three(report["totals"])
    table.add_row(*totals)
    return table


def badness(row: EquivalenceGroup) -> tuple[float, ...]:
    """Return how badly a workload fared, the larger the worse: being away is worst of all."""
    return (
        row["seconds_at_zero"],
        row["pods_killed"],
        row["seconds_below_floor"],
        row["ready_replica_seconds_lost"],
        row["pods_cut_short"],
    )


def _three(row: EquivalenceGroup | None) -> list[Text | str]:
    if row is None:
        return ["-", "-", "-"]
    return [
        _seconds(row["ready_replica_seconds_lost"]),
        _seconds(row["seconds_at_zero"], " s"),
        _count(row["pods_killed"]),
    ]


def _seconds(value: float, unit: str = "") -> Text:
    text = "<0.1" if 0 < value < 0.05 else f"{value:,.1f}"  # noqa: PLR2004 - what rounds to 0.0
    return Text(f"{text}{unit}", style=_BAD if value else _GOOD)


def _count(value: int) -> Text:
    return Text(str(value), style=_BAD if value else _GOOD)


def _short(row: EquivalenceGroup, report: Report) -> Text:
    alike = [other for other in report["workloads"] if other["name"] == row["name"]]
    return Text(row["name"]) if len(alike) == 1 else _name(row, report)


def _name(row: EquivalenceGroup, report: Report) -> Text:
    clusters = {other["cluster"] for other in report["workloads"]}
    where = f"{row['cluster']} " if len(clusters) > 1 else ""
    return Text(f"{where}{row['kind']} {row['namespace']}/{row['name']}")
