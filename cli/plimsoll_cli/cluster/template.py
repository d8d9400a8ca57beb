"""`plimsoll clusters template`: the CloudFormation templates that deploy without a build."""

from __future__ import annotations

from importlib.resources import files
from typing import Final

import click

from plimsoll_cli.terminal import say

TEMPLATES: Final = ("spoke", "reports", "spot-interruption")
"""Files of `plimsoll_cli/templates`, which are links to those in `infra`."""


@click.command()
@click.argument("name", type=click.Choice(TEMPLATES))
def template(name: str) -> None:
    """Print the CloudFormation template NAME, which needs no build.

    `spoke` lets the hub read and act in another account, `reports` lets people read reports alone, and
    `spot-interruption` is an FIS experiment that interrupts one tagged spot instance.
    """
    say((files("plimsoll_cli") / "templates" / f"{name}.yaml").read_text("utf-8").rstrip("\n"))
