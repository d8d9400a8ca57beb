"""`plimsoll gpu`: what is kept of a cluster's GPUs, and advice about it. No command writes to a cluster."""

from __future__ import annotations

from typing import Final

import click

from plimsoll_cli.gpu.geometry import geometry

EXAMPLES: Final = """\b
Examples:
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


gpu.add_command(geometry)
