"""`plimsoll drill`: play a timeline of interruptions and measure what the workloads felt.

Standard output carries the result and nothing else: the JSON report with `--json -`, tables
otherwise. Progress and the log of `--verbose` go to standard error. With `--compare` the drill is
played once for each responder, in the order in which they are named.
"""

from __future__ import annotations

import json
import traceback
from collections.abc import Sequence
from pathlib import Path
from typing import Literal

import click
from rich.console import Console
from rich.text import Text

from plimsoll.domain.errors import BadInput, PlimsollError
from plimsoll_cli import Failure
from plimsoll_cli.options import console
from plimsoll_cli.targets import check_target, write_target
from plimsoll_testbed.measure.history import History, RecordingListener
from plimsoll_testbed.measure.listening import Listener
from plimsoll_testbed.measure.report import Report, as_text, as_texts, exit_status
from plimsoll_testbed.output.live import LiveView
from plimsoll_testbed.output.page.document import page
from plimsoll_testbed.output.page.runs import Run
from plimsoll_testbed.output.tables import comparison_table, workloads_table
from plimsoll_testbed.rigs.registry import RESPONDERS, RIGS, Rig, rig_of
from plimsoll_testbed.scenario.drill import Drill, read_drill
from plimsoll_testbed.scenario.scenario import DrillFile
from plimsoll_testbed.scenario.validation import schema

STDOUT = "-"
WIDTH = 140
"""Columns where the output is no terminal and nobody says how wide it is."""

EXAMPLES = """\b
Examples:
  plimsoll drill examples/all-spot-at-once.yaml
  plimsoll drill examples/all-spot-at-once.yaml --responder drain
  plimsoll drill examples/all-spot-at-once.yaml --compare --html page.html
  plimsoll drill my-drill.yaml --compare plimsoll,drain
  plimsoll drill examples/one-node.yaml --rig cluster --verbose
  plimsoll drill my-drill.yaml --seed 7 --json - | jq .totals
  plimsoll drill --schema > drill.schema.json

\b
Exit status:
  0  the drill ran, and every expectation held
  1  an expectation did not hold
  2  the scenario or the rig is bad
"""


def _show_schema(context: click.Context, _option: click.Parameter, wanted: bool) -> None:
    if wanted:
        click.echo(json.dumps(schema(DrillFile), indent=2))
        context.exit()


@click.command(epilog=EXAMPLES)
@click.argument("file", type=click.Path(path_type=Path))
@click.option(
    "--rig",
    default="simulated",
    show_default=True,
    metavar="|".join(RIGS),
    help="What the drill is played on.",
)
@click.option(
    "--responder",
    type=click.Choice(RESPONDERS),
    help="Who reacts: plimsoll (the default); drain cordons and evicts everything at once; none "
    "does nothing.",
)
@click.option(
    "--compare",
    is_flag=False,
    flag_value=",".join(RESPONDERS),
    metavar="[LIST]",
    help="Play it once for each responder and lay them side by side; all of them, or those of "
    "LIST, with commas. JSON is a list then. FILE goes before it.",
)
@click.option("--seed", type=click.IntRange(min=0), help="Beats spec.seed of the scenario.")
@click.option(
    "--json",
    "json_to",
    metavar="FILE|-",
    help="Write the report as JSON; - is standard output, which then carries nothing else.",
)
@click.option(
    "--html",
    metavar="FILE",
    help="Write a web page with a timeline of each workload and node; it needs no network.",
)
@click.option("--verbose", is_flag=True, help="Say on standard error all that happens.")
@click.option(
    "--schema",
    is_flag=True,
    is_eager=True,
    expose_value=False,
    callback=_show_schema,
    help="Print the JSON Schema of FILE, for an editor, and exit.",
)
def drill(  # noqa: PLR0913, PLR0917 - the options of the command
    file: Path,
    rig: str,
    responder: str | None,
    compare: str | None,
    seed: int | None,
    json_to: str | None,
    html: str | None,
    verbose: bool,
) -> None:
    """Play the scenario FILE and measure what its workloads feel."""
    if json_to is not None and json_to != STDOUT:
        check_target("--json", json_to)
    if html is not None:
        check_target("--html", html)
    responders = _responders(responder, compare)
    play = rig_of(rig)
    drill = read_drill(file)
    chosen = drill.scenario.seed if seed is None else seed
    lines: Literal["none", "all"] = "all" if verbose else "none"
    title = f"{drill.scenario.name} · {rig}"
    with LiveView(console(stderr=True, width=WIDTH), title, kept=False, lines=lines) as listener:
        runs = [
            _played(play, rig, drill, responder=who, seed=chosen, listener=listener)
            for who in responders
        ]
    reports = [run.report for run in runs]
    text = as_text(reports[0]) if compare is None else as_texts(reports)
    if json_to == STDOUT:
        click.echo(text, nl=False)
    elif json_to is not None:
        write_target("--json", json_to, text)
    if html is not None:
        write_target("--html", html, page(runs, description=drill.scenario.description))
    out = console(stderr=json_to == STDOUT, width=WIDTH)
    if len(reports) > 1:
        out.print(comparison_table(reports, narrow=out.width < WIDTH))
    for report in reports:
        show(report, out, alone=len(reports) == 1)
    status = max(map(exit_status, reports))
    if status:
        raise click.exceptions.Exit(status)


def _responders(responder: str | None, compare: str | None) -> Sequence[str]:
    if compare is None:
        return (responder or RESPONDERS[0],)
    if responder is not None:
        raise BadInput("--responder and --compare do not go together; name all with --compare")
    named = [name.strip() for name in compare.split(",")]
    unknown = [name for name in named if name not in RESPONDERS]
    if unknown:
        raise BadInput(
            f"--compare {compare}: there is no responder {unknown[0] or '(nothing)'}; choose of "
            f"{', '.join(RESPONDERS)}, and put FILE before --compare"
        )
    return list(dict.fromkeys(named))


def _played(  # noqa: PLR0913 - what a drill is played with
    play: Rig, rig: str, drill: Drill, *, responder: str, seed: int, listener: Listener
) -> Run:
    """Play; a bug ends with its traceback, and not with Python's own status 1."""
    history = History()
    heard = RecordingListener(listener, history)
    try:
        report = play(drill, responder=responder, seed=seed, listener=heard, history=history)
    except PlimsollError:
        raise
    except Exception as error:
        traceback.print_exc()
        raise Failure(f"the rig {rig} broke: that is a bug of Plimsoll, see above") from error
    return Run(report=report, history=history)


def show(report: Report, out: Console, *, alone: bool = True) -> None:
    """Print a report for people; beside others, without what their common table tells."""
    totals = report["totals"]
    if alone:
        out.print(workloads_table(report))
    else:
        out.print(Text(report["responder"], style="bold"))
    end = "settled" if report["settled"] else "not settled"
    out.print(
        f"{end} after {report['seconds']:g} s; "
        f"{totals['nodes_noticed']} nodes had notice, {totals['nodes_cordoned']} were cordoned"
        + _spread(" after", totals["cordon_after_p50"], totals["cordon_after_p99"])
        + _spread("; empty after", totals["empty_after_p50"], totals["empty_after_p99"])
    )
    if totals["cost_vs_all_on_demand"] is not None:
        out.print(f"the nodes cost {totals['cost_vs_all_on_demand']:.0%} of all on demand")
    for failure in report["expect"]["failures"]:
        out.print(Text(f"expectation failed: {failure}", style="bold red"))
    if report["expect"]["held"]:
        out.print(Text("every expectation held", style="green"))


def _spread(what: str, middle: float | None, most: float | None) -> str:
    if middle is None or most is None:
        return ""
    return f"{what} {middle:g} s" if middle == most else f"{what} {middle:g} s (p99 {most:g} s)"
