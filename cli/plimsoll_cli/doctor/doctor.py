"""`plimsoll doctor`: check an installation, and print a fix for each fault.

It runs with your own rights. Only the canary takes the functions' path, with their rights.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from typing import Final
from uuid import uuid4

import click
from rich.table import Table

from plimsoll_cli.doctor.checks import findings_of
from plimsoll_cli.doctor.concurrency_checks import missing
from plimsoll_cli.doctor.findings import Finding, State
from plimsoll_cli.doctor.installation import Installation
from plimsoll_cli.options import (
    Output,
    console,
    environment_of,
    output_option,
    print_answer,
    registered,
    stack_option,
)

EXAMPLES: Final = """\b
Examples:
  plimsoll doctor --cluster harbor
  plimsoll doctor --cluster harbor --output json
  plimsoll doctor --cluster harbor --fix reserve

\b
Exit status:
  0  no check failed
  1  a check failed; the output names the fix
  2  the stack cannot be read, or a check was skipped because its facts cannot be read
"""

MUST_FIX: Final = 1
SKIPPED: Final = 2


@click.command(epilog=EXAMPLES)
@click.option("--cluster", metavar="NAME", required=True, help="Check this registered cluster.")
@click.option(
    "--wait",
    type=click.FloatRange(min=0, max=600),
    default=30,
    show_default=True,
    metavar="SECONDS",
    help="Wait this long for the canary to reach the function and return.",
)
@click.option(
    "--fix",
    type=click.Choice(["reserve"]),
    help="First reserve concurrency for the functions of the stack, where the account's quota allows it.",
)
@output_option
@stack_option
@click.pass_context
def doctor(  # noqa: PLR0913, PLR0917 - the options of the command
    ctx: click.Context,
    cluster: str,
    wait: float,
    fix: str | None,
    output: Output,
    stack: str,
) -> None:
    """Check a cluster and its stack, and print a fix for each fault.

    The doctor sends a canary to the event bus to see that notices reach the function; a canary changes
    nothing. It tries writes to the cluster in dry runs, and reads everything else; only with --fix does
    it write, to the functions of the stack. To check rights in an EKS cluster, you must be an
    administrator of the cluster.
    """
    environment = environment_of(ctx)
    deployed = environment.deployed(stack)
    asked = registered(deployed, cluster)
    if fix is not None:
        for function, executions in missing(deployed.aws.concurrency()).items():
            deployed.aws.reserve(function, executions)
    word = f"doctor-{uuid4()}"
    found = findings_of(Installation(deployed, asked, environment.clock, word=word, wait=wait))
    if output != "table":
        print_answer(
            {"stack": stack, "cluster": cluster, "findings": [asdict(f) for f in found]}, output
        )
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
