"""`plimsoll gpu`: what is kept of a cluster's GPUs, and advice about it. Only `apply --go` writes to a cluster."""

from __future__ import annotations

from typing import Final

import click

from plimsoll_cli.gpu.apply import apply
from plimsoll_cli.gpu.audit import audit_command
from plimsoll_cli.gpu.fit import fit_command
from plimsoll_cli.gpu.geometry import geometry

EXAMPLES: Final = """\b
Examples:
  plimsoll gpu audit --cluster harbor
  plimsoll gpu audit --from days.jsonl --price p5.48xlarge=43.2 --files schedules/
  plimsoll gpu fit --cluster harbor --days 14
  plimsoll gpu fit --from days.jsonl --card H200 --within 0.005 --output json
  plimsoll gpu fit --cluster harbor --mechanism dra --files patches/
  plimsoll gpu geometry --demand demand.yaml --fleet fleet.json

\b
Exit status:
  0  the answer was printed
  2  an argument or a file is wrong, or the service refuses or cannot be reached
"""


@click.group(epilog=EXAMPLES)
def gpu() -> None:
    """Find idle GPUs, and size and split them.

    The agent of a cluster keeps a document for each class of workload and day in the service. Read them
    from there after `plimsoll login`, or from a file.
    """


for command in (audit_command, fit_command):
    command.epilog = EXAMPLES
    gpu.add_command(command)
gpu.add_command(geometry)
gpu.add_command(apply)
