"""`plimsoll drill`: play a timeline of interruptions and measure its workloads.

Standard output carries only the result: the JSON report with `--json -`, tables otherwise. Progress
and the log of `--verbose` go to standard error. `--compare` plays the drill once for each responder,
in the order of the option.
"""

from __future__ import annotations

import json
import traceback
from collections.abc import Sequence
from pathlib import Path
from typing import Literal

import click
from rich.text import Text

from plimsoll.domain.errors import BadInput, PlimsollError
from plimsoll_cli import Failure
from plimsoll_cli.options import Terminal, console
from plimsoll_cli.targets import check_target, write_target
from plimsoll_cli.terminal import say
from plimsoll_simulation.measure.history import History
from plimsoll_simulation.measure.listening import Listener, RecordingListener
from plimsoll_simulation.measure.report import Report, as_text, as_texts, exit_status
from plimsoll_simulation.output.live import LiveView
from plimsoll_simulation.output.page.document import page
from plimsoll_simulation.output.page.runs import Run
from plimsoll_simulation.output.tables import comparison_table, workloads_table
from plimsoll_simulation.rigs.registry import RESPONDERS, RIGS, Rig, rig_of
from plimsoll_simulation.scenario.drill import Drill, read_drill
from plimsoll_simulation.scenario.scenario import DrillFile
from plimsoll_simulation.scenario.validation import schema

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
  0  every expectation held
  1  an expectation did not hold
  2  the scenario or the rig is invalid
"""


def _show_schema(context: click.Context, _option: click.Parameter, wanted: bool) -> None:
    if wanted:
        say(json.dumps(schema(DrillFile), indent=2))
        context.exit()


@click.command(epilog=EXAMPLES)
@click.argument("file", type=click.Path(path_type=Path))
@click.option(
    "--rig",
    default="simulated",
    show_default=True,
    metavar="|".join(RIGS),
    help="Play on this rig.",
)
@click.option(
    "--responder",
    type=click.Choice(RESPONDERS),
    help="Respond with Plimsoll (the default), with a handler that evicts everything at once, or not at all.",
)
@click.option(
    "--compare",
    is_flag=False,
    flag_value=",".join(RESPONDERS),
    metavar="[LIST]",
    help="Compare all responders, or those in the comma-separated LIST. Give FILE before this option. The JSON "
    "report is then a list.",
)
@click.option("--seed", type=click.IntRange(min=0), help="Override spec.seed of the scenario.")
@click.option(
    "--json",
    "json_to",
    metavar="FILE|-",
    help="Write the report as JSON to a file, or to standard output alone (-).",
)
@click.option(
    "--html",
    metavar="FILE",
    help="Write a web page with a timeline of each workload and node. It needs no network.",
)
@click.option("--verbose", is_flag=True, help="Log every event on standard error.")
@click.option(
    "--schema",
    is_flag=True,
    is_eager=True,
    expose_value=False,
    callback=_show_schema,
    help="Print the JSON Schema of scenarios for an editor, and exit.",
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
    """Play a scenario, and measure the time of each workload at zero and below its ready floor."""
    if json_to is not None and json_to != STDOUT:
        check_target("--json", json_to)
    if html is not None:
        check_target("--html", html)
    responders = _responders(responder, compare)
    play = rig_of(rig)
    drill = read_drill(file)
    for kind, count in sorted(drill.left_out.items()):
        say(f"left out of the manifests, because no drill plays it: {count} {kind}", err=True)
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
        say(text, nl=False)
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
        raise BadInput("give either --responder or --compare")
    named = [name.strip() for name in compare.split(",")]
    unknown = [name for name in named if name not in RESPONDERS]
    if unknown:
        raise BadInput(
            f"--compare {compare}: there is no responder {unknown[0] or '(empty)'}; choose from "
            f"{', '.join(RESPONDERS)}, and give FILE before --compare"
        )
    return list(dict.fromkeys(named))


def _played(  # noqa: PLR0913 - what a drill is played with
    play: Rig, rig: str, drill: Drill, *, responder: str, seed: int, listener: Listener
) -> Run:
    """Play; a bug prints its traceback, and exits with 2 instead of Python's 1."""
    history = History()
    heard = RecordingListener(listener, history)
    try:
        report = play(drill, responder=responder, seed=seed, listener=heard, history=history)
    except PlimsollError:
        raise
    except Exception as error:
        traceback.print_exc()
        raise Failure(
            f"the rig {rig} failed by a bug of Plimsoll: see the traceback above"
        ) from error
    return Run(report=report, history=history)


def show(report: Report, out: Terminal, *, alone: bool = True) -> None:
    """Print a report; beside others, without the table that they share."""
    totals = report["totals"]
    if alone:
        out.print(workloads_table(report))
    else:
        out.print(Text(report["responder"], style="bold"))
    end = "settled" if report["settled"] else "not settled"
    out.print(
        f"{end} after {report['seconds']:g} s; "
        f"{totals['nodes_noticed']} nodes got a notice, {totals['nodes_cordoned']} were cordoned"
        + _spread(" after", totals["cordon_after_p50"], totals["cordon_after_p99"])
        + _spread("; empty after", totals["empty_after_p50"], totals["empty_after_p99"])
    )
    if totals["cost_vs_all_on_demand"] is not None:
        out.print(
            f"the nodes cost {totals['cost_vs_all_on_demand']:.0%} of the same nodes on-demand"
        )
    for failure in report["expect"]["failures"]:
        out.print(Text(f"expectation failed: {failure}", style="bold red"))
    if report["expect"]["held"]:
        out.print(Text("every expectation held", style="green"))


def _spread(what: str, middle: float | None, most: float | None) -> str:
    if middle is None or most is None:
        return ""
    return f"{what} {middle:g} s" if middle == most else f"{what} {middle:g} s (p99 {most:g} s)"
