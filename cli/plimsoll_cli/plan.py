"""`plimsoll plan`: on-demand floors, spread groups and what placement would change; nothing is written."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Any, Final

import click

from plimsoll.domain.errors import BadInput
from plimsoll.domain.names import MIN_ON_DEMAND
from plimsoll.domain.placement import PlacementPlan, Standing, plan_placement
from plimsoll.services.ports import ClusterApi
from plimsoll_cli.environment import Environment, environment_of
from plimsoll_cli.options import (
    Choice,
    cluster_options,
    console,
    json_option,
    print_json,
    registered,
    table,
    unregistered,
)

EXAMPLES: Final = """\b
Examples:
  plimsoll plan --cluster harbor
  plimsoll plan --context harbor --explain shop/web
  plimsoll plan --cluster harbor --json

\b
Exit status:
  0  every floor stands, or none is asked for
  1  a floor does not stand, or an annotation makes no sense
  2  something given is wrong, or the stack or the cluster cannot be reached
"""


@click.command(epilog=EXAMPLES, short_help="Show on-demand floors and what placement would change.")
@click.option("--explain", metavar="NAMESPACE/NAME", help="Show the arithmetic of one workload.")
@cluster_options
@json_option
@click.pass_context
def plan(  # noqa: PLR0913, PLR0917 - the options of the command
    ctx: click.Context,
    explain: str | None,
    stack: str,
    cluster: str | None,
    kubeconfig: Path | None,
    context: str | None,
    as_json: bool,  # noqa: FBT001 - click hands it over by name
) -> None:
    """Show where each workload with an on-demand floor stands, and what the next run would change.

    A Deployment, a StatefulSet or a namespace states its floor in the annotation
    `plimsoll.dev/min-on-demand`: a number of replicas such as "2", or a share such as "30%".
    """
    environment = environment_of(ctx)
    choice = Choice(stack=stack, cluster=cluster, kubeconfig=kubeconfig, context=context)
    api = opened(environment, choice)
    found = plan_placement(
        api.observe(), environment.clock.now(), namespaces=api.namespace_floors()
    )
    if explain is not None:
        _explain(standing_of(found, explain))
    elif as_json:
        print_json(_as_json(found))
    else:
        _show(found)
    if found.problems or not all(standing.met for standing in found.workloads):
        ctx.exit(1)


def opened(environment: Environment, choice: Choice) -> ClusterApi:
    """Return the API of the cluster that the options name.

    Raises:
        BadInput: they name none.
    """
    if choice.by_kubeconfig:
        return unregistered(environment, choice)[1]
    if choice.cluster is None:
        raise BadInput("name the cluster with --cluster, or with --context out of a kubeconfig")
    deployed = environment.deployed(choice.stack)
    return deployed.clusters.open(registered(deployed, choice.cluster))


def standing_of(found: PlacementPlan, name: str) -> Standing:
    """Return one workload of a plan by `namespace/name`.

    Raises:
        BadInput: no workload of that name has a floor.
    """
    for standing in found.workloads:
        ref = standing.floor.workload
        if f"{ref.namespace}/{ref.name}" == name:
            return standing
    raise BadInput(f"{name} has no on-demand floor: annotate it with {MIN_ON_DEMAND}")


def _explain(standing: Standing) -> None:
    floor = standing.floor
    out = console()
    out.print(f"{floor.workload}: {floor.keep} of {floor.replicas} replicas on on-demand")
    out.print(f"way: {floor.way}, because {floor.reason}")
    stands = ", ".join(f"{count} on {where}" for where, count in sorted(standing.ready.items()))
    out.print(f"stands: {stands or 'nowhere'}; Pending: {standing.pending}")
    if standing.lacks is not None:
        name = f"{floor.workload.namespace}/{floor.workload.name}"
        out.print(f"lacks: {standing.lacks}; `plimsoll snippet {name}` prints it")


def _show(found: PlacementPlan) -> None:
    out = console()
    if not found.workloads:
        out.print(f"no workload asks for an on-demand floor: annotate one with {MIN_ON_DEMAND}")
    else:
        shown = table("WORKLOAD", "FLOOR", "ON-DEMAND", "SPOT", "PENDING", "KEPT BY", "LACKS")
        for standing in found.workloads:
            floor = standing.floor
            shown.add_row(
                str(floor.workload),
                f"{floor.keep} of {floor.replicas}",
                str(standing.ready.get("on-demand", 0)),
                str(standing.ready.get("spot", 0)),
                str(standing.pending),
                f"{floor.way} over {floor.spot_groups}" if floor.spot_groups else floor.way,
                standing.lacks or "",
            )
        out.print(shown)
    if found.groups:
        shown = table("SPREAD OVER", "GROUP", "NODES", "OPEN", "BECAUSE")
        for group in found.groups:
            shown.add_row(
                str(group.spot_groups),
                group.name,
                str(len(group.nodes)),
                "yes" if group.opened else "no",
                group.reason,
            )
        out.print(shown)
    for problem in found.problems:
        out.print(f"left as it is: {problem}")
    for step in found.steps:
        out.print(f"would {step}")
    if found.held is not None and found.workloads:
        out.print(f"moves no pod: {found.held}")


def _as_json(found: PlacementPlan) -> dict[str, Any]:
    return {
        "workloads": [
            asdict(standing) | {"workload": str(standing.floor.workload), "met": standing.met}
            for standing in found.workloads
        ],
        "groups": [asdict(group) for group in found.groups],
        "problems": found.problems,
        "steps": [str(step) for step in found.steps],
        "held": found.held,
    }
