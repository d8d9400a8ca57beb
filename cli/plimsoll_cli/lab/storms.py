"""`plimsoll storms`: play random drills on the simulated rig and check fixed rules.

A seed is a storm. A storm that breaks a rule is shrunk and kept as an ordinary drill.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from multiprocessing import get_context
from pathlib import Path
from typing import Final

import click
from rich.table import Table
from rich.text import Text

from plimsoll_cli.options import Terminal
from plimsoll_simulation.scenario.clusters import OtherControllerName
from plimsoll_simulation.storms import (
    DRAINS,
    Other,
    Storm,
    StormResult,
    Worse,
    beside,
    draw_storm,
    play_storm,
    shrink,
    write_storm,
)

EXAMPLES: Final = """\b
Examples:
  plimsoll storms
  plimsoll storms --count 10000 --jobs 4 --keep broken/
  plimsoll storms --seed 4711 --count 1 --twice-every 1
  plimsoll storms --seed 20000 --count 2000 --jobs 2 --against drain --against none --twice-every 0
  plimsoll storms --count 100 --other-controller karpenter --guarded --against none

\b
Exit status:
  0  every storm kept every rule, and no workload was worse off
  1  a storm broke a rule, or a workload was worse off; the output names the seeds
  2  an argument is wrong
"""
EVERY: Final = 5.0
"""Seconds between two lines of progress."""
SHRUNK: Final = 3
"""How many seeds of one broken rule are shrunk and kept."""


@click.command(epilog=EXAMPLES)
@click.option(
    "--count",
    type=click.IntRange(min=1),
    default=200,
    show_default=True,
    help="Play this many storms.",
)
@click.option(
    "--seed",
    type=click.IntRange(min=0),
    default=0,
    show_default=True,
    help="Start with this seed.",
)
@click.option(
    "--jobs",
    type=click.IntRange(min=1),
    default=1,
    show_default=True,
    help="Use this many processes.",
)
@click.option(
    "--twice-every",
    type=click.IntRange(min=0),
    default=20,
    show_default=True,
    help="Play every n-th storm again with two executors at once, and compare; 0 for no storm.",
)
@click.option(
    "--against",
    type=click.Choice(("drain", "none")),
    multiple=True,
    help="Also play this responder, and print the workloads that it serves better: less time at zero, below quorum or "
    "below the ready floor by more than 5 s (32 s beside none, or where it let pods be killed), or fewer pods killed or cut short.",
)
@click.option(
    "--other-controller",
    type=click.Choice(sorted(DRAINS)),
    help="Let this program also drain in every storm.",
)
@click.option("--guarded", is_flag=True, help="Guard every Deployment.")
@click.option(
    "--keep",
    metavar="FOLDER",
    type=click.Path(path_type=Path, file_okay=False),
    help="Keep shrunk storms that break a rule in this folder, as drills.",
)
def storms(  # noqa: PLR0913, PLR0917 - the options of the command
    count: int,
    seed: int,
    jobs: int,
    twice_every: int,
    against: tuple[Other, ...],
    other_controller: OtherControllerName | None,
    guarded: bool,
    keep: Path | None,
) -> None:
    """Play random storms, and report every broken rule."""
    out = Terminal(highlight=False)
    err = Terminal(stderr=True, highlight=False)
    began = progressed = time.monotonic()
    broken: Counter[str] = Counter()
    played = unplayable = 0
    worse: list[tuple[int, Worse]] = []
    if guarded and other_controller is None:
        raise click.UsageError("--guarded needs --other-controller")
    drawn = partial(_drawn, other_controller=other_controller, guarded=guarded)
    play = partial(_play, drawn=drawn, twice_every=twice_every, against=against)
    for result in _played(play, range(seed, seed + count), jobs):
        played += 1
        unplayable += not result.playable
        worse += ((result.seed, each) for each in result.worse)
        for rule in sorted(result.rules):
            broken[rule] += 1
            twice = _is_twice(result.seed, twice_every)
            again = partial(play_storm, twice=twice, against=against)
            kept = keep if broken[rule] <= SHRUNK else None
            _report(out, result, rule, kept, drawn, again)
        if time.monotonic() - progressed > EVERY or played == count:
            progressed = time.monotonic()
            rate = played / (progressed - began)
            err.print(f"{played} of {count} storms, {rate:.1f}/s, {broken.total()} broken rules")
    out.print(f"{played} storms from seed {seed}, {unplayable} of them too large for their cluster")
    for excused in (False, True):
        rows = [(seed, each) for seed, each in worse if bool(each.excused) == excused]
        if rows:
            out.print(_table(rows, excused=excused))
    for rule, times in broken.most_common():
        out.print(Text(f"{rule}: {times} storms", style="bold red"))
    if broken:
        raise click.exceptions.Exit(1)
    out.print(Text("every rule was kept", style="green"))


def _played(play: Callable[[int], StormResult], seeds: range, jobs: int) -> Iterator[StormResult]:
    if jobs == 1:
        yield from map(play, seeds)
        return
    with ProcessPoolExecutor(jobs, mp_context=get_context("spawn")) as pool:
        yield from pool.map(play, seeds, chunksize=4)


def _drawn(seed: int, *, other_controller: OtherControllerName | None, guarded: bool) -> Storm:
    storm = draw_storm(seed)
    return storm if other_controller is None else beside(storm, other_controller, guarded=guarded)


def _play(
    seed: int, *, drawn: Callable[[int], Storm], twice_every: int, against: tuple[Other, ...]
) -> StormResult:
    return play_storm(drawn(seed), twice=_is_twice(seed, twice_every), against=against)


def _is_twice(seed: int, twice_every: int) -> bool:
    return twice_every > 0 and seed % twice_every == 0


def _table(rows: Sequence[tuple[int, Worse]], *, excused: bool) -> Table:
    title = "worse off, but excused" if excused else "worse off"
    table = Table("seed", "workload", "figure", "plimsoll", "other", "is", title=title)
    if excused:
        table.add_column("because")
    for seed, each in rows:
        figures = (f"{each.ours:g}", f"{each.theirs:g}")
        why = (each.excused,) if excused else ()
        table.add_row(str(seed), each.workload, each.figure, *figures, each.than, *why)
    return table


def _report(  # noqa: PLR0913, PLR0917 - what is told, and how it is played again
    out: Terminal,
    result: StormResult,
    rule: str,
    keep: Path | None,
    drawn: Callable[[int], Storm],
    play: Callable[[Storm], StormResult],
) -> None:
    broken = [f"seed {result.seed} broke {rule}{how}" for how in _broken(result, rule)]
    for each in broken:
        out.print(Text(each), soft_wrap=True)
    if keep is None:
        return

    def fails(smaller: Storm) -> bool:
        return rule in play(smaller).rules

    storm = drawn(result.seed)
    folder = keep / f"{storm.name}-{rule.replace(' ', '-')}"
    comment = f"Shrunk by `plimsoll storms`: {broken[0]}"
    path = write_storm(shrink(storm, fails), folder, comment=comment)
    out.print(Text(f"  kept as {path}"), soft_wrap=True)


def _broken(result: StormResult, rule: str) -> Iterator[str]:
    """Yield how a rule was broken: the first time, or for each workload that is worse off."""
    for violation in result.violations:
        if violation.rule == rule:
            yield f" at {violation.seconds:g} s: {violation.what}"
            return
    for each in result.worse:
        if each.rule == rule and not each.excused:
            yield f": {each.workload}, {each.figure} {each.ours:g}, not {each.theirs:g}"
