"""`plimsoll jobs`: the gangs of a cluster's queues."""

from __future__ import annotations

from pathlib import Path
from typing import Final

import click

from plimsoll_cli.batch.gangs import cancel, list_gangs, resume, suspend, why_command
from plimsoll_cli.batch.submit import submit
from plimsoll_cli.kubeconfig_options import kubeconfig_options
from plimsoll_cli.options import (
    Output,
    environment_of,
    output_option,
    refuse_options_before_subcommand,
)

EXAMPLES: Final = """\b
Examples:
  plimsoll jobs --context harbor
  plimsoll jobs submit -f examples/queues/train.yaml --queue research
  plimsoll jobs why lab/train --context harbor
  plimsoll jobs suspend lab/train
  plimsoll jobs resume lab/train
  plimsoll jobs cancel lab/train

\b
Exit status:
  0  the command succeeded
  1  there is no such gang
  2  an argument is wrong, a right is missing, or the cluster cannot be reached
"""


@click.group(epilog=EXAMPLES, invoke_without_command=True)
@kubeconfig_options
@output_option
@click.pass_context
def jobs(ctx: click.Context, context: str | None, kubeconfig: Path | None, output: Output) -> None:
    """List waiting and running gangs, the running ones first."""
    if ctx.invoked_subcommand is not None:
        refuse_options_before_subcommand(ctx)
        return
    list_gangs(environment_of(ctx), kubeconfig, context, output)


for command in (why_command, suspend, resume, cancel):
    command.epilog = EXAMPLES
    jobs.add_command(command)
jobs.add_command(submit)
