"""`plimsoll demo`: watch a drill on a deployed stack, the optimisation service, batch queues, or a fleet of GPUs.

Progress and live views go to standard error; standard output carries the results.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Final

import click
from rich.table import Table
from rich.text import Text

from plimsoll.domain.errors import BadInput
from plimsoll_cli import INTERRUPTED
from plimsoll_cli.lab import demo_batch
from plimsoll_cli.lab.drill import WIDTH
from plimsoll_cli.options import Terminal, console
from plimsoll_cli.targets import write_target
from plimsoll_cli.terminal import say
from plimsoll_simulation.checkout import Checkout
from plimsoll_simulation.measure.findings import findings
from plimsoll_simulation.measure.report import Report, as_text
from plimsoll_simulation.output.live import LiveView
from plimsoll_simulation.output.tables import comparison_table
from plimsoll_simulation.rigs.registry import RIGS, SIMULATED, rig_of
from plimsoll_simulation.scenario.drill import Drill, read_drill

EXAMPLE: Final = Path("examples", "all-spot-and-back.yaml")
CONSOLE_EXAMPLE: Final = Path("examples", "all-spot-at-once.yaml")
PACE: Final = 0.1
"""Real seconds for each second of a simulated drill: fast, and slow enough to follow."""

DEFAULT_RIG: Final = "emulated"

EXAMPLES: Final = """\b
Examples:
  plimsoll demo
  plimsoll demo --rig simulated
  plimsoll demo --file my-drill.yaml --keep reports/
  plimsoll demo batch
  plimsoll demo gpu

\b
Exit status:
  0  every finding of the verdict holds; the recommendation was carried out; every job in a queue completed;
     no node with GPUs is stranded
  1  a finding does not hold, the two rigs disagree, a job in a queue did not complete, or a promise about
     the GPUs was broken
  2  the scenario or the rig is invalid, or a step failed; the message names the fault
"""


@click.command(epilog=EXAMPLES)
@click.argument(
    "what",
    type=click.Choice(("interruption", "service", "batch", "gpu")),
    default="interruption",
    metavar="[interruption|service|batch|gpu]",
)
@click.option(
    "--file",
    metavar="FILE",
    type=click.Path(path_type=Path),
    help="Play this drill as the interruption, instead of the loss of all spot nodes.",
)
@click.option(
    "--rig",
    type=click.Choice(tuple(RIGS)),
    default=DEFAULT_RIG,
    show_default=True,
    help="Play the interruption on this rig, such as a stack on an emulated AWS, or the simulation alone.",
)
@click.option(
    "--keep",
    metavar="FOLDER",
    type=click.Path(path_type=Path, file_okay=False),
    help="Keep the reports of the interruption in this folder, as JSON.",
)
def demo(what: str, file: Path | None, rig: str, keep: Path | None) -> None:
    """Watch an interruption (the default), the optimisation service, batch queues, or GPUs that are split.

    interruption: every spot instance of a small shop gets its notice in the same second. EC2 refuses the
    first node group and serves the second. When spot capacity is back, the pods return to it, and a
    workload keeps its on-demand floor. The demo simulates the same drill with a handler that evicts
    everything at once, and with no response.

    service: an agent enrols with the service on an emulated AWS, and sends a snapshot of a shop. A user reads the
    savings and accepts a recommendation, and the agent removes a node. The demo calls schedules itself
    instead of waiting for them.

    batch: jobs of two parameter servers and four workers arrive interleaved on ten slots of a real control
    plane, once with kube-scheduler alone and once in a queue. A job completes when all its six pods have run
    for five seconds at once. Then a JobSet, with its own operator, waits for its queue, makes way for a Job and
    resumes. Only the kubelets are simulated.

    gpu: 24 whole GPUs serve, train, and stand idle for a scripted week. The demo audits it, sizes each workload, plans
    the fewest GPUs, and splits a node of a real control plane, on which owners follow the advice. The kubelets and
    NVIDIA's mig-manager are simulated.
    """
    if what != "interruption" and (file, rig, keep) != (None, DEFAULT_RIG, None):
        raise click.UsageError(f"--file, --rig and --keep are of the interruption, not of {what}")
    try:
        if what == "service":
            _service()
        elif what == "batch":
            demo_batch.play()
        elif what == "gpu":
            from plimsoll_cli.lab import demo_gpu  # noqa: PLC0415 - needs the rigs' libraries

            demo_gpu.play()
        else:
            _interruption(file, rig, keep)
    except KeyboardInterrupt:
        say("interrupted: the demo stopped everything that it started", err=True)
        raise click.exceptions.Exit(INTERRUPTED) from None
    except ModuleNotFoundError as error:
        raise BadInput(
            f"the demo needs the library {error.name}; install plimsoll[rigs]"
        ) from error


def _service() -> None:
    """Let the service save a shop one node, and print what the commands played print."""
    Checkout.find()
    from plimsoll_cli.lab.service_play import play  # noqa: PLC0415 - needs the rigs' libraries
    from plimsoll_testbed.rigs.emulated.service import ServiceRig  # noqa: PLC0415 - as above

    progress = partial(say, err=True)
    progress("deploying the service on an emulated AWS")
    with ServiceRig() as rig:
        done = play(rig, progress)
    say(f"{done.id} is done, and is foreseen to save ${done.monthly:,.2f} a month")


def _interruption(file: Path | None, rig: str, keep: Path | None) -> None:
    play = rig_of(rig)
    drill = read_drill(_file(file))
    if keep is not None:
        _make(keep)
    err = Terminal(stderr=True, highlight=False)
    title = f"{drill.scenario.name} · {rig} · plimsoll"
    simulated = _simulate(drill, rig, err)
    others = [simulated["drain"], simulated["none"]]
    pace = PACE if rig == SIMULATED else 0
    with LiveView(err, title, others=others, pace=pace) as shown:
        shown.step(f"setting up the rig {rig}")
        report = play(drill, responder="plimsoll", seed=drill.scenario.seed, listener=shown)
    if keep is not None:
        _keep(keep, [report, *simulated.values()])
    _conclude(report, simulated)


def _simulate(drill: Drill, rig: str, console: Terminal) -> dict[str, Report]:
    """Play the simulated drills: by responder, those that are not watched."""
    play = rig_of(SIMULATED)
    began = time.monotonic()
    reports = {}
    with LiveView(console, drill.scenario.name) as shown:
        for responder in ("drain", "none", *(["plimsoll"] if rig != SIMULATED else [])):
            shown.step(f"simulating {responder}")
            at = time.monotonic()
            reports[responder] = play(drill, responder=responder, seed=drill.scenario.seed)
            took = time.monotonic() - at
            shown.say(time.monotonic() - began, f"simulated {responder} ({took:.1f} s)")
    return reports


def _conclude(report: Report, simulated: dict[str, Report]) -> None:
    """Print table and verdict; end with 1 if a promise was not kept."""
    out = console(width=WIDTH)
    compared = [report, simulated["drain"], simulated["none"]]
    out.print(comparison_table(compared, narrow=out.width < WIDTH))
    found = findings(report, simulated["drain"], simulated.get("plimsoll"))
    verdict = Table.grid(padding=(0, 2, 0, 0))
    for finding in found:
        mark = Text("yes", style="green") if finding.held else Text("NO", style="bold red")
        verdict.add_row(mark, finding.text)
    out.print(verdict)
    failed = sum(not finding.held for finding in found)
    if failed:
        out.print(Text(f"{failed} of {len(found)} did not hold", style="bold red"))
        raise click.exceptions.Exit(1)
    out.print(Text(f"Plimsoll carried {report['drill']} as promised", style="bold green"))
    out.print(f"Watch a storm in the browser: plimsoll console --drill {CONSOLE_EXAMPLE}")


def _file(file: Path | None) -> Path:
    if file is not None:
        return file
    if EXAMPLE.is_file():
        return EXAMPLE
    try:
        return Checkout.find().root / EXAMPLE
    except BadInput as error:
        raise BadInput(f"there is no {EXAMPLE} here: give --file; without it, {error}") from error


def _make(folder: Path) -> None:
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise BadInput(f"--keep {folder}: {error.strerror}") from error


def _keep(folder: Path, reports: Sequence[Report]) -> None:
    for report in reports:
        path = folder / f"{report['drill']}-{report['rig']}-{report['responder']}.json"
        write_target("--keep", str(path), as_text(report))
