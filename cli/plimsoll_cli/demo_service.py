"""`plimsoll demo-service`: watch the optimisation service and an agent save a shop one node.

Progress goes to standard error; standard output carries what the commands print that a person types.
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
  0  the recommendation was carried out, and what it saves was measured
  2  it was not, or the rig does not start; the message says what failed
"""


@click.command(epilog=EXAMPLES, short_help="Watch the optimisation service save a node.")
def demo_service() -> None:
    """Deploy the optimisation service on an emulated AWS, and let it save a shop one node.

    An agent enrols and tells of the shop, a person reads the savings and accepts one recommendation, and
    the agent carries out the instruction that comes of it. Nothing waits for schedules: they are called
    when it is their turn.
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
        click.echo("interrupted: everything that the demo had started is stopped", err=True)
        raise click.exceptions.Exit(INTERRUPTED) from None
    click.echo(f"{done.id} is done, and saves ${done.measured:,.2f} a month")
