"""`plimsoll template`: the CloudFormation templates that deploy without a build."""

from __future__ import annotations

from importlib.resources import files
from typing import Final

import click

from plimsoll_cli.terminal import say

TEMPLATES: Final = ("spoke", "reports", "spot-interruption")
"""Files of `plimsoll_cli/templates`, which are links to those in `infra`."""
EXAMPLES: Final = """\b
Examples:
  plimsoll template spoke > spoke.yaml
  plimsoll template reports > reports.yaml

\b
Templates:
  spoke              lets the hub read and act in another account
  reports            lets people read reports and names of clusters alone
  spot-interruption  an FIS experiment that interrupts one tagged spot instance
"""


@click.command(epilog=EXAMPLES)
@click.argument("name", type=click.Choice(TEMPLATES))
def template(name: str) -> None:
    """Print the CloudFormation template NAME, which needs no build."""
    say((files("plimsoll_cli") / "templates" / f"{name}.yaml").read_text("utf-8").rstrip("\n"))
