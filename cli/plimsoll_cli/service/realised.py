"""`plimsoll recommendations savings`: what advice was foreseen to save beside what it saved."""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Iterable, Sequence
from datetime import datetime
from typing import Final, Literal

import click
import msgspec

from plimsoll_agent.service import Service
from plimsoll_cli.options import Output, Terminal, console, output_option, print_answer, table
from plimsoll_cli.plan.rows import DOLLARS
from plimsoll_cli.terminal import say
from plimsoll_service.wire.savings import Changed, SavingsHistory

type By = Literal["month", "day", "recommendation"]

_ASKED: Final = "plimsoll_cli.service.advice"
"""Where the group, which imports this module, says how to reach the service."""
_UNTOLD: Final = "-"
_CHANGED: Final = "changed"
"""The column in words; a spreadsheet has numbers instead."""
_CSV_ONLY: Final = (
    "nodes before",
    "nodes after",
    "pods before",
    "pods after",
    "vCPU before",
    "vCPU after",
)
MILLI: Final = 1000
EXAMPLES: Final = """\b
Examples:
  plimsoll recommendations --cluster harbor savings
  plimsoll recommendations --cluster harbor savings --by recommendation
  plimsoll recommendations --cluster harbor savings --by day --csv > savings.csv

\b
Exit status:
  0  the command succeeded
  2  an argument is wrong, or the service refuses or cannot be reached
"""


@click.command("savings", epilog=EXAMPLES)
@click.option(
    "--by",
    type=click.Choice(["month", "day", "recommendation"]),
    default="month",
    show_default=True,
    help="What a row is.",
)
@click.option(
    "--before",
    type=click.DateTime(["%Y-%m-%d"]),
    help="Show the 92 days before this day in UTC. [default: today]",
)
@click.option("--csv", "as_csv", is_flag=True, help="Print the rows as CSV.")
@output_option
@click.pass_context
def realised(
    ctx: click.Context, by: By, before: datetime | None, *, as_csv: bool, output: Output
) -> None:
    """Compare what accepted recommendations were foreseen to save with what they saved.

    A day after a change is compared with the days before it, at the prices of that day. The difference is the
    realised saving. A day that cannot be compared enters no sum, and its row gives the reason.
    """
    asked: Callable[[], tuple[Service, str]] = ctx.meta[_ASKED]
    service, path = asked()
    query = f"before={before:%Y-%m-%d}" if before else ""
    path = f"{path.removesuffix('recommendations')}savings/history"
    found = service.call("GET", path, SavingsHistory, query=query)
    if as_csv:
        _print_csv(_ROWS[by](found))
    elif output != "table":
        print_answer(msgspec.to_builtins(found), output)
    else:
        _show(console(), _ROWS[by](found))


type Row = dict[str, object]


def _months(found: SavingsHistory) -> Iterable[Row]:
    for each in found.months:
        yield {
            "month": each.month,
            "days": each.days,
            "gaps": each.gaps,
            "assumed": each.assumed,
            "cost": each.cost,
            "foreseen": each.foreseen,
            "untold": each.untold,
            "realised": each.realised,
            **_changed(each.changed),
            "why": "; ".join(each.why),
        }


def _days(found: SavingsHistory) -> Iterable[Row]:
    for each in found.days:
        yield {
            "day": each.day,
            "cost": each.cost,
            "foreseen": each.foreseen,
            "untold": each.untold,
            "realised": each.realised,
            "prices": each.prices,
            "assumed": "yes" if each.assumed else "no",
            "why": each.why,
        }


def _recommendations(found: SavingsHistory) -> Iterable[Row]:
    for each in found.recommendations:
        yield {
            "id": each.id,
            "what": f"{each.kind} {each.about.kind} {each.about.name}",
            "seen": each.seen_at and f"{each.seen_at:%Y-%m-%d}",
            "days": each.days,
            "foreseen": each.foreseen,
            "realised": each.realised,
            **_changed(each.changed),
            "verdict": each.verdict,
            "why": each.why,
        }


_ROWS: Final[dict[By, Callable[[SavingsHistory], Iterable[Row]]]] = {
    "month": _months,
    "day": _days,
    "recommendation": _recommendations,
}


def _changed(changed: Changed | None) -> Row:
    """Return what else changed between the days before and the days after."""
    if changed is None:
        return dict.fromkeys((_CHANGED, *_CSV_ONLY, "others a day", "prices a day"))
    before, after = changed.before, changed.after
    told = {
        "nodes": (before.nodes, after.nodes),
        "pods": (before.pods, after.pods),
        "vCPU": (before.requested_cpu_m / MILLI, after.requested_cpu_m / MILLI),
    }
    moved = {name: pair for name, pair in told.items() if pair[0] != pair[1]}
    return {
        _CHANGED: ", ".join(
            f"{name} {one:,.1f} to {two:,.1f}" for name, (one, two) in moved.items()
        ),
        **dict(zip(_CSV_ONLY, (value for pair in told.values() for value in pair), strict=True)),
        "others a day": changed.others,
        "prices a day": changed.prices,
    }


def _show(out: Terminal, rows: Iterable[Row]) -> None:
    found = list(rows)
    if not found:
        out.print("nothing is known of these days yet")
        return
    columns = [name for name in found[0] if name not in _CSV_ONLY]
    shown = table(*(name.upper() for name in columns))
    for row in found:
        shown.add_row(*(_text(row[name]) for name in columns))
    out.print(shown)


def _text(value: object) -> str:
    match value:
        case None | "":
            return _UNTOLD
        case float():
            return DOLLARS.format(value).replace("$-", "-$")
        case _:
            return str(value)


def _print_csv(rows: Iterable[Row]) -> None:
    """Print rows for a spreadsheet: what is not known is empty, and text that begins a formula is quoted."""
    found: Sequence[Row] = list(rows)
    columns = [name for name in (found[0] if found else ()) if name != _CHANGED]
    written = io.StringIO()
    writer = csv.DictWriter(written, columns, extrasaction="ignore", lineterminator="\n")
    writer.writeheader()
    writer.writerows({name: _cell(value) for name, value in row.items()} for row in found)
    say(written.getvalue().rstrip("\n"))


def _cell(value: object) -> object:
    return (
        f"'{value}" if isinstance(value, str) and value.startswith(("=", "+", "-", "@")) else value
    )
