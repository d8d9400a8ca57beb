"""`plimsoll doctor`: what is wrong with an installation, and the cure.

It runs with the rights of whoever types it. Only the canary goes the way of the functions, and with
their rights.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from typing import Final
from uuid import uuid4

import click
from rich.table import Table

from plimsoll_cli.checks import Finding, State, findings_of
from plimsoll_cli.checks.reading import read_facts
from plimsoll_cli.environment import environment_of
from plimsoll_cli.options import console, json_option, print_json, registered, stack_option

EXAMPLES: Final = """\b
Examples:
  plimsoll doctor --cluster harbor
  plimsoll doctor --cluster harbor --json

\b
Exit status:
  0  nothing must be fixed
  1  something must be fixed; the cure is beside it
  2  the stack cannot be read, or a check was skipped because its facts could not be read
"""

MUST_FIX: Final = 1
SKIPPED: Final = 2


@click.command(epilog=EXAMPLES, short_help="Say what is wrong with an installation, and the cure.")
@click.option("--cluster", metavar="NAME", required=True, help="A registered cluster.")
@click.option(
    "--wait",
    type=click.FloatRange(min=0, max=600),
    default=30,
    show_default=True,
    metavar="SECONDS",
    help="How long the canary may take to the function and back.",
)
@json_option
@stack_option
@click.pass_context
def doctor(
    ctx: click.Context,
    cluster: str,
    wait: float,
    as_json: bool,
    stack: str,
) -> None:
    """Check a cluster and its stack: what is wrong, and what to do about it.

    A canary is put on the event bus, which touches nothing: it shows that notices reach the
    function. Changes to the cluster are tried in a dry run, and none is kept. All else is only
    read. To ask about rights in an EKS cluster you must be an administrator of it.
    """
    environment = environment_of(ctx)
    deployed = environment.deployed(stack)
    asked = registered(deployed, cluster)
    word = f"doctor-{uuid4()}"
    found = list(findings_of(read_facts(deployed, asked, environment.clock, word=word, wait=wait)))
    if as_json:
        print_json({"stack": stack, "cluster": cluster, "findings": [asdict(f) for f in found]})
    else:
        _show(found)
    states = {finding.state for finding in found}
    if State.FAIL in states:
        ctx.exit(MUST_FIX)
    if State.SKIPPED in states:
        ctx.exit(SKIPPED)


def _show(found: Sequence[Finding]) -> None:
    shown = Table.grid(padding=(0, 2, 0, 0))
    for _ in range(3):
        shown.add_column(overflow="fold")
    for finding in found:
        shown.add_row(finding.state.value, finding.check, finding.says)
        if finding.cure is not None:
            shown.add_row("", "", f"-> {finding.cure}")
    console().print(shown)
