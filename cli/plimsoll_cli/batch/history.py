"""`plimsoll queues history`: which gangs were stopped for which others."""

from __future__ import annotations

from typing import Final

import click

from plimsoll_cli.options import (
    Output,
    clock_text,
    console,
    environment_of,
    output_option,
    print_answer,
    table,
)
from plimsoll_cli.terminal import say

MOST_SHOWN: Final = 1000


@click.command()
@click.option(
    "--stack",
    envvar="PLIMSOLL_BATCH_STACK",
    default="plimsoll-batch",
    show_default=True,
    show_envvar=True,
    help="Use this stack of batch queues, in the region of your AWS settings.",
)
@click.option("--cluster", required=True, metavar="NAME", help="Use this registered cluster.")
@click.option("--queue", metavar="NAME", help="Show only gangs of this queue.")
@click.option(
    "--limit",
    type=click.IntRange(1, MOST_SHOWN),
    default=50,
    show_default=True,
    help="Show so many, the newest.",
)
@output_option
@click.pass_context
def history(  # noqa: PLR0913, PLR0917 - the options of the command
    ctx: click.Context, stack: str, cluster: str, queue: str | None, limit: int, output: Output
) -> None:
    """List the preemptions of the last 30 days, the newest first: when, by whom and why."""
    found = environment_of(ctx).preemptions(stack).list(cluster, limit=limit, queue=queue)
    if output != "table":
        print_answer(
            [
                {"at": r.at, "queue": r.queue, "gang": r.gang, "by": r.by or None, "reason": r.why}
                for r in found
            ],
            output,
        )
        return
    if not found:
        say(f"no preemption of the last 30 days is known in {cluster}")
        return
    shown = table("AT", "QUEUE", "GANG", "BY", "")
    for r in found:
        shown.add_row(clock_text(r.at), r.queue, r.gang, r.by, r.why)
    console().print(shown)
