"""`plimsoll console`: watch a storm in a browser, and see how much of each workload rides on spot."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path
from typing import Final

import click

from plimsoll_cli.console.web import Access, listening, server
from plimsoll_cli.terminal import say

EXAMPLES: Final = """\b
Examples:
  plimsoll console --drill examples/all-spot-at-once.yaml
  plimsoll console --drill examples/refused-capacity.yaml --speed 30

\b
Exit status:
  0  the console was closed with Ctrl-C
  2  an argument is wrong
"""


@click.command(epilog=EXAMPLES)
@click.option(
    "--drill",
    type=click.Path(path_type=Path),
    metavar="FILE",
    required=True,
    help="Play this scenario on this machine, and watch it.",
)
@click.option(
    "--speed",
    type=click.FloatRange(min=0.1, max=1000),
    default=10.0,
    show_default=True,
    help="Play so many seconds of the drill in a second.",
)
def console(drill: Path, speed: float) -> None:
    """Open the console: a web server on loopback, for one browser, which only reads.

    It prints a link that works once. Close it with Ctrl-C.
    """
    from plimsoll_cli.console.drill_source import DrillSource  # noqa: PLC0415 - loads the simulation
    from plimsoll_simulation.scenario.drill import read_drill  # noqa: PLC0415 - the same

    source = DrillSource(read_drill(drill), speed)
    with closing(source), listening() as socket:
        access = Access(port=socket.getsockname()[1])
        source.start()
        say(f"Watch {source.title}: {access.url()}")
        server(source, access).run(sockets=[socket])
