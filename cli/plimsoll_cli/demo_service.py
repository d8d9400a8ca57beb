"""`plimsoll demo-service`: watch the optimisation service and an agent save a shop one node.

Progress goes to standard error; standard output carries the output of the commands played.
"""

from __future__ import annotations

from typing import Final

import click

from plimsoll.domain.errors import BadInput
from plimsoll_cli import INTERRUPTED
from plimsoll_testbed.rigs.checkout import Checkout

EXAMPLES: Final = """\b
Example:
  plimsoll demo-service

\b
Exit status:
  0  the agent carried out the recommendation, and the service measured the saving
  2  a step failed, or the rig does not start; the message names the fault
"""


@click.command(epilog=EXAMPLES)
def demo_service() -> None:
    """Deploy the optimisation service on an emulated AWS, and let it save a shop one node.

    An agent enrols and sends a snapshot of the shop. A user reads the savings and accepts a recommendation,
    and the agent carries out the instruction. The demo calls schedules itself instead of waiting for them.
    """
    Checkout.find()
    try:
        from plimsoll_cli.service_play import play  # noqa: PLC0415 - needs the rigs' libraries
        from plimsoll_testbed.rigs.emulated.service import ServiceRig  # noqa: PLC0415 - as above
    except ModuleNotFoundError as error:
        raise BadInput(
            f"the demo needs the library {error.name}; install plimsoll[rigs]"
        ) from error

    def say(line: str) -> None:
        click.echo(line, err=True)

    try:
        say("deploying the service on an emulated AWS")
        with ServiceRig() as rig:
            done = play(rig, say)
    except KeyboardInterrupt:
        click.echo("interrupted: the demo stopped everything that it started", err=True)
        raise click.exceptions.Exit(INTERRUPTED) from None
    click.echo(f"{done.id} is done, and saves ${done.measured:,.2f} a month")
