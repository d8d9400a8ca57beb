"""`plimsoll drill`: play a timeline of interruptions and measure what the workloads felt.

Standard output carries the result and nothing else: the JSON report with `--json -`, tables
otherwise. Progress and the log of `--verbose` go to standard error.
"""

from __future__ import annotations

import os
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import click
from rich.console import Console
from rich.progress import BarColumn, TextColumn, TimeElapsedColumn
from rich.progress import Progress as Bar
from rich.text import Text

from plimsoll.cli import Failure
from plimsoll.domain.errors import BadInput, PlimsollError
from plimsoll.drill.picture import Picture
from plimsoll.drill.repertoire import RIGS_TO_COME
from plimsoll.drill.report import Report, as_text, exit_status
from plimsoll.drill.rigs import RESPONDERS, RIGS, Listener, Progress, Quiet, rig_of
from plimsoll.drill.script import read_drill
from plimsoll.drill.tables import workloads_table

STDOUT = "-"
WIDTH = 140
"""Columns where the output is no terminal and nobody says how wide it is."""

EXAMPLES = """\b
Examples:
  plimsoll drill examples/all-spot-at-once.yaml
  plimsoll drill examples/all-spot-at-once.yaml --responder drain
  plimsoll drill my-drill.yaml --seed 7 --json - | jq .totals

\b
Exit status:
  0  the drill ran, and every expectation held
  1  an expectation did not hold
  2  the scenario or the rig is bad
"""


@click.command(epilog=EXAMPLES)
@click.argument("file", type=click.Path(path_type=Path))
@click.option(
    "--rig",
    default="simulated",
    show_default=True,
    metavar="|".join((*RIGS, *sorted(RIGS_TO_COME))),
    help="What the drill is played on.",
)
@click.option(
    "--responder",
    type=click.Choice(RESPONDERS),
    default="plimsoll",
    show_default=True,
    help="Who reacts: plimsoll; drain cordons and evicts everything at once; none does nothing.",
)
@click.option("--seed", type=click.IntRange(min=0), help="Beats spec.seed of the scenario.")
@click.option(
    "--json",
    "json_to",
    metavar="FILE|-",
    help="Write the report as JSON; - is standard output, which then carries nothing else.",
)
@click.option("--html", metavar="FILE", help="Write the report as a web page (not built yet).")
@click.option("--verbose", is_flag=True, help="Say on standard error all that happens.")
def drill(  # noqa: PLR0913, PLR0917 - the options of the command
    file: Path,
    rig: str,
    responder: str,
    seed: int | None,
    json_to: str | None,
    html: str | None,
    verbose: bool,  # noqa: FBT001 - click hands it over by name
) -> None:
    """Play the scenario FILE and measure what its workloads feel."""
    if html is not None:
        raise BadInput("--html is not built yet; write the report with --json instead")
    _check_target(json_to)
    play = rig_of(rig)
    script = read_drill(file)
    chosen = script.scenario.seed if seed is None else seed
    with _listening(verbose=verbose) as listener:
        report = _played(
            rig, lambda: play(script, responder=responder, seed=chosen, listener=listener)
        )
    if json_to == STDOUT:
        click.echo(as_text(report), nl=False)
    elif json_to is not None:
        _write(Path(json_to), as_text(report))
    show(report, _console(stderr=json_to == STDOUT))
    status = exit_status(report)
    if status:
        raise click.exceptions.Exit(status)


def _played(rig: str, play: Callable[[], Report]) -> Report:
    """Play; a bug ends with its traceback, and not with Python's own status 1."""
    try:
        return play()
    except PlimsollError:
        raise
    except Exception as error:
        traceback.print_exc()
        raise Failure(f"the rig {rig} broke: that is a bug of Plimsoll, see above") from error


def show(report: Report, console: Console) -> None:
    """Print a report for people."""
    totals = report["totals"]
    console.print(workloads_table(report))
    end = "settled" if report["settled"] else "not settled"
    console.print(
        f"{end} after {report['seconds']:g} s; "
        f"{totals['nodes_noticed']} nodes had notice, {totals['nodes_cordoned']} were cordoned"
        + _spread(" after", totals["cordon_after_p50"], totals["cordon_after_p99"])
        + _spread("; empty after", totals["empty_after_p50"], totals["empty_after_p99"])
    )
    if totals["cost_vs_all_on_demand"] is not None:
        console.print(f"the nodes cost {totals['cost_vs_all_on_demand']:.0%} of all on demand")
    for failure in report["expect"]["failures"]:
        console.print(Text(f"expectation failed: {failure}", style="bold red"))
    if report["expect"]["held"]:
        console.print(Text("every expectation held", style="green"))


def _spread(what: str, middle: float | None, most: float | None) -> str:
    if middle is None or most is None:
        return ""
    return f"{what} {middle:g} s" if middle == most else f"{what} {middle:g} s (p99 {most:g} s)"


class _Bar:
    """A bar on a terminal; the log of `--verbose` scrolls above it."""

    def __init__(self, console: Console, bar: Bar | None, *, verbose: bool) -> None:
        self._console = console
        self._bar = bar
        self._task = None if bar is None else bar.add_task("warming up", total=None)
        self._verbose = verbose

    def progress(self, progress: Progress) -> None:
        """Show how far it is."""
        if self._bar is not None and self._task is not None:
            self._bar.update(
                self._task,
                description=f"{progress.seconds:.0f} s of the drill",
                completed=progress.seconds,
                total=progress.of_seconds,
            )

    def say(self, seconds: float, what: str) -> None:
        """Log a line."""
        if self._verbose:
            self._console.print(Text(f"{seconds:9.3f}  {what}"), soft_wrap=True)

    def show(self, picture: Callable[[], Picture]) -> None:
        """Pass it over: a bar is all there is."""


@contextmanager
def _listening(*, verbose: bool) -> Iterator[Listener]:
    console = _console(stderr=True)
    if console.is_terminal:
        columns = (TextColumn("{task.description}"), BarColumn(), TimeElapsedColumn())
        with Bar(*columns, console=console, transient=True) as bar:
            yield _Bar(console, bar, verbose=verbose)
    else:
        yield _Bar(console, None, verbose=True) if verbose else Quiet()


def _console(*, stderr: bool) -> Console:
    console = Console(stderr=stderr, highlight=False)
    if not console.is_terminal:
        console.width = WIDTH
    return console


def _check_target(json_to: str | None) -> None:
    """Refuse a report's file before the drill, not after it."""
    if json_to is None or json_to == STDOUT:
        return
    path = Path(json_to)
    if path.is_dir():
        raise BadInput(f"--json {json_to}: that is a directory; name a file")
    if not path.parent.is_dir():
        raise BadInput(f"--json {json_to}: there is no directory {path.parent}; make it first")
    if not os.access(path if path.exists() else path.parent, os.W_OK):
        raise BadInput(f"--json {json_to}: it cannot be written; choose another file")


def _write(path: Path, text: str) -> None:
    try:
        path.write_text(text, encoding="utf-8")
    except OSError as error:
        raise BadInput(f"--json {path}: {error.strerror}") from error
