"""`plimsoll console`: watch a storm in a browser, and see how much of each workload rides on spot."""

from __future__ import annotations

from contextlib import closing, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Final

import click

from plimsoll_cli.console.web import Access, listening, server
from plimsoll_cli.kubeconfig_options import kubeconfig_options
from plimsoll_cli.terminal import say

if TYPE_CHECKING:
    from plimsoll_cli.console.cluster_source import ClusterSource
    from plimsoll_cli.console.drill_source import DrillSource
    from plimsoll_cli.console.stack_source import StackSource

EXAMPLES: Final = """\b
Examples:
  plimsoll console --drill examples/all-spot-at-once.yaml
  plimsoll console --drill examples/refused-capacity.yaml --speed 30
  plimsoll console --context harbor
  plimsoll console --context harbor --group base=m6i.large,on-demand,max=6
  plimsoll console --stack plimsoll

\b
Exit status:
  0  the console was closed with Ctrl-C
  2  an argument is wrong, or the kubeconfig cannot be read
"""
USUAL_SPEED: Final = 10.0


@click.command(epilog=EXAMPLES)
@click.option(
    "--drill",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="Play this scenario on this machine, and watch it.",
)
@click.option(
    "--speed",
    type=click.FloatRange(min=0.1, max=1000),
    help="Play so many seconds of the drill in a second. [default: 10]",
)
@click.option(
    "--stack", metavar="NAME", help="Watch the storms of this stack's clusters, by its tables."
)
@kubeconfig_options
@click.option(
    "--group",
    "groups",
    multiple=True,
    metavar="NAME=TYPE,...",
    help="With --context: this node group may grow in rehearsals, as `plimsoll rehearse --group` takes it.",
)
@click.pass_context
def console(  # noqa: PLR0913, PLR0917 - the options of the command
    ctx: click.Context,
    drill: Path | None,
    speed: float | None,
    context: str | None,
    stack: str | None,
    kubeconfig: Path | None,
    groups: tuple[str, ...],
) -> None:
    """Open the console: a web server on loopback, for one browser, which only reads.

    Watch a drill (--drill), which needs no cluster, a live cluster (--context), or the storms of all clusters of a
    stack (--stack). A live cluster is read with the list and watch rights of infra/cluster; rehearsals begin from the
    page and write nothing. Of a stack its tables are read, and no cluster.

    The command prints a link that works once. Close the console with Ctrl-C.
    """
    by_kubeconfig = context is not None or kubeconfig is not None
    if [drill is not None, by_kubeconfig, stack is not None].count(True) != 1:
        raise click.UsageError("give --drill, --context or --kubeconfig, or --stack")
    if speed is not None and drill is None:
        raise click.UsageError("--speed is for --drill: a live cluster has its own")
    if groups and not by_kubeconfig:
        raise click.UsageError("--group is for --context: a drill names its own node groups")
    source: DrillSource | ClusterSource | StackSource
    if drill is not None:
        source = _of_drill(drill, speed or USUAL_SPEED)
    elif stack is not None:
        source = _of_stack(ctx, stack)
    else:
        source = _of_cluster(ctx, kubeconfig, context, groups)
    with closing(source), listening() as socket:
        access = Access(port=socket.getsockname()[1])
        serving = server(source, access)
        say(f"Watch {source.title}: {access.url()}")
        # Last: what a source loads and plays in its thread takes time from the first page.
        source.start()
        # The server ends in order at Ctrl-C, and then says so once more.
        with suppress(KeyboardInterrupt):
            serving.run(sockets=[socket])


def _of_drill(file: Path, speed: float) -> DrillSource:
    from plimsoll_cli.console.drill_source import DrillSource  # noqa: PLC0415 - loads the simulation
    from plimsoll_simulation.scenario.drill import read_drill  # noqa: PLC0415 - the same

    return DrillSource(read_drill(file), speed)


def _of_stack(ctx: click.Context, name: str) -> StackSource:
    from plimsoll_cli.console.stack_source import StackSource  # noqa: PLC0415 - loads the domain
    from plimsoll_cli.options import environment_of  # noqa: PLC0415 - the same

    environment = environment_of(ctx)
    deployed = environment.deployed(name)
    return StackSource(
        name, deployed.registry, deployed.frames, deployed.reports, environment.clock
    )


def _of_cluster(
    ctx: click.Context, kubeconfig: Path | None, context: str | None, groups: tuple[str, ...]
) -> ClusterSource:
    from plimsoll_cli.console.cluster_source import ClusterSource  # noqa: PLC0415 - loads the simulation
    from plimsoll_cli.lab.rehearsal_groups import groups_of  # noqa: PLC0415 - the same
    from plimsoll_cli.options import environment_of  # noqa: PLC0415 - the same

    environment = environment_of(ctx)
    name, api = environment.by_kubeconfig(kubeconfig, context)
    return ClusterSource(
        name, api, environment.clock, lambda seen: groups_of(groups, None, seen.nodes)
    )
