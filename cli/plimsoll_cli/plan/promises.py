"""`plimsoll reports promises`: for how long promises were to be broken, by month, and for how long they were."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import Any, Final

import click

from plimsoll.domain.reports import Kept, Score, months_until
from plimsoll_cli.options import (
    Output,
    console,
    environment_of,
    output_option,
    print_answer,
    registered,
    stack_option,
    table,
)
from plimsoll_cli.terminal import say

EXAMPLES: Final = """\b
Examples:
  plimsoll reports promises
  plimsoll reports promises --cluster harbor
  plimsoll reports promises --output json

\b
Exit status:
  0  the scores were printed, if there are any
  2  an argument is wrong, or the stack cannot be reached
"""


@click.command(epilog=EXAMPLES)
@click.option(
    "--cluster", metavar="NAME", help="Also show each workload of this cluster. [default: all]"
)
@output_option
@stack_option
@click.pass_context
def promises(ctx: click.Context, cluster: str | None, output: Output, stack: str) -> None:
    """Compare by month how long workloads were predicted to be below their promises, and how long they were.

    Placement runs every five minutes. Each run adds to the prediction: the probability of being below the promise, times
    the time since the last run. The observed time ("came") counts how long fewer replicas were Ready than promised after
    an interruption that Plimsoll reported. Both are sums over all workloads. Clusters in the mode observe have no score.
    A score is shown after 30 days.
    """
    environment = environment_of(ctx)
    deployed, months = environment.deployed(stack), months_until(environment.clock.now())
    names = deployed.registry.names() if cluster is None else [registered(deployed, cluster).name]
    found = [row for name in names for row in rows_of(deployed.reports.scores(name, months))]
    if output != "table":
        print_answer({"promises": [row.data for row in found]}, output)
        return
    if not found:
        say("No promise was compared yet: annotate a workload with plimsoll.dev/keep-ready.")
        return
    shown = table("CLUSTER", "MONTH", "WORKLOAD", "COMPARED", "SCORE")
    for row in found:
        for cells in row.cells(workloads=cluster is not None):
            shown.add_row(*cells)
    console().print(shown)


@dataclass(frozen=True, slots=True, kw_only=True)
class MonthRow:
    """One month of a cluster."""

    score: Score
    so_far: timedelta
    """For how long the cluster was judged up to the end of the month."""

    def cells(self, *, workloads: bool) -> Iterator[Sequence[str]]:
        """Yield its row of the table, and one of each workload."""
        yield (self.score.cluster, self.score.month, "all", *self._told(self.score.total))
        if workloads:
            for name, kept in self.score.workloads.items():
                yield ("", "", name, *self._told(kept))
        if self.score.left_out:
            yield ("", "", f"{self.score.left_out} more", "-", "too many to be scored")

    @property
    def data(self) -> dict[str, Any]:
        """The same as data."""
        return {
            "cluster": self.score.cluster,
            "month": self.score.month,
            **_as_data(self.score.total),
            "score": self._told(self.score.total)[1],
            "left_out": self.score.left_out,
            "workloads": [
                {"workload": name, **_as_data(kept)} for name, kept in self.score.workloads.items()
            ],
        }

    def _told(self, kept: Kept) -> tuple[str, str]:
        """Return for how long somebody was judged in the month, and the score once the cluster was for long enough."""
        so_far = replace(self.score.total, judged=self.so_far)
        says = kept.compared if so_far.scored else so_far.says
        return f"{kept.judged / timedelta(days=1):.1f} days", says


def rows_of(scores: Sequence[Score]) -> Sequence[MonthRow]:
    """Return the months of a cluster, the newest first."""
    found, so_far = [], timedelta()
    for score in sorted(scores, key=lambda each: each.month):
        so_far += score.judged
        found.append(MonthRow(score=score, so_far=so_far))
    return found[::-1]


def _as_data(kept: Kept) -> dict[str, float]:
    return {
        "compared_seconds": round(kept.judged.total_seconds(), 1),
        "predicted_seconds": round(kept.predicted.total_seconds(), 1),
        "observed_seconds": round(kept.observed.total_seconds(), 1),
    }
