"""Options that the commands of the service share."""

from __future__ import annotations

from typing import Final

import click

from plimsoll_cli.options import Decorator

service_option: Final[Decorator] = click.option(
    "--stack",
    envvar="PLIMSOLL_SERVICE_STACK",
    default="plimsoll-service",
    show_default=True,
    show_envvar=True,
    help="Use this stack of the optimisation service, in the region of your AWS settings.",
)
