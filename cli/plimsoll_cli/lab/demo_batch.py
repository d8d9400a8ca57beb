"""`plimsoll demo batch`: gangs on too few slots, with kube-scheduler alone and with queues; then a JobSet in a queue.

The live view goes to standard error; standard output carries the comparison.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext
from datetime import timedelta
from typing import Any, Final

import click
from rich.console import Group
from rich.live import Live
from rich.table import Table
from rich.text import Text

from plimsoll_cli.options import console
from plimsoll_simulation.fake_cluster.settings import Settings

RUNS_SECONDS: Final = 5.0
WINDOW_SECONDS: Final = 60.0
TIMES: Final = Settings(pod_startup=timedelta(seconds=1), pod_stop=timedelta(seconds=1))
STATUS_SECONDS: Final = 10.0
"""Between two lines where there is no terminal."""
SLOTS: Final = 10


def play() -> None:
    """Play the cases and print how they compare; end with 1 if a job in a queue did not complete."""
    from plimsoll_testbed.rigs.controlplane.plane import ControlPlane  # noqa: PLC0415 - needs the rigs' libraries
    from plimsoll_testbed.rigs.gangs import job_set  # noqa: PLC0415 - as above
    from plimsoll_testbed.rigs.gangs.cases import Case  # noqa: PLC0415 - as above
    from plimsoll_testbed.rigs.gangs.play import Progress  # noqa: PLC0415 - as above
    from plimsoll_testbed.rigs.gangs.play import play as play_cases  # noqa: PLC0415 - as above

    cases = [
        Case(
            name=f"{'queued' if queued else 'alone'}-{jobs}",
            slots=SLOTS,
            jobs=jobs,
            queued=queued,
        )
        for jobs in (1, 2, 5)
        for queued in (False, True)
    ]
    screen = console(stderr=True)
    said = 0.0
    screen.print("starting a control plane")
    with ControlPlane(settings=TIMES, users={job_set.USER: ()}) as plane:
        live: AbstractContextManager[Any] = (
            Live(console=screen, transient=True) if screen.is_terminal else nullcontext()
        )

        def seen(seconds: float, progress: Sequence[Progress]) -> None:
            nonlocal said
            if shown is not None:
                shown.update(Group(Text(f"second {seconds:.0f}"), slots(progress)))
            elif seconds - said >= STATUS_SECONDS:
                said = seconds
                screen.print(f"second {seconds:.0f}: {'; '.join(map(line, progress))}")

        with live as shown:
            done = play_cases(
                plane,
                cases,
                window=WINDOW_SECONDS,
                runs=RUNS_SECONDS,
                seen=seen,
            )
        console().print(comparison(done))
        screen.print("starting the operator of JobSets")
        job_set.play(plane, seen=lambda at, words: console().print(f"second {at:.0f}: {words}"))
    if not all(each.makespan is not None for each in done if each.case.queued):
        raise click.exceptions.Exit(1)


def slots(progress: Sequence[Any]) -> Table:
    """Return the slots at this moment: a letter for each pod, a dot for each free slot."""
    shown = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0))
    for heading in ("jobs", "", "slots", "completed"):
        shown.add_column(heading)
    for each in progress:
        letters = "".join(
            chr(ord("A") + number) * each.bound.get(gang, 0)
            for number, gang in enumerate(each.case.gangs)
        )
        shown.add_row(
            str(each.case.jobs),
            _who(each),
            letters.ljust(each.case.slots, "."),
            f"{len(each.done)}/{each.case.jobs}",
        )
    return shown


def comparison(progress: Sequence[Any]) -> Table:
    """Return the results of all cases."""
    shown = Table(title=f"{SLOTS} slots, jobs of 6 pods, {WINDOW_SECONDS:.0f} s")
    shown.add_column("jobs", justify="right")
    shown.add_column("")
    for heading in ("completed", "all after", "slot-seconds held by incomplete gangs"):
        shown.add_column(heading, justify="right")
    for each in progress:
        span = "never" if each.makespan is None else f"{each.makespan:.1f} s"
        completed = f"{len(each.done)} of {each.case.jobs}"
        shown.add_row(str(each.case.jobs), _who(each), completed, span, f"{each.wasted:.0f}")
    return shown


def line(each: Any) -> str:
    """Return the progress of a case."""
    return f"{_who(each)} {len(each.done)}/{each.case.jobs}"


def _who(each: Any) -> str:
    return "queues" if each.case.queued else "kube-scheduler alone"
