"""`plimsoll gpu geometry`: the fewest GPUs that hold a demand, and which nodes to split how."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import click

from plimsoll.domain.errors import BadInput
from plimsoll_cli.gpu.diagram import diagram
from plimsoll_cli.gpu.fleet_file import Fleet, fleet_of, read, wanted_of
from plimsoll_cli.gpu.steering_files import write_files
from plimsoll_cli.options import Output, console, output_option, print_answer, table
from plimsoll_cli.targets import check_target, write_target
from plimsoll_cli.terminal import say
from plimsoll_service.domain.gpu import (
    CARDS,
    FleetPlan,
    GpuNode,
    Layout,
    NodePlan,
    geometries_of,
    geometry_name,
    layout_name,
    plan_fleet,
)

EXAMPLES: Final = """\b
Examples:
  kubectl get nodes,pods --all-namespaces --output json > fleet.json
  plimsoll gpu geometry --demand demand.yaml --fleet fleet.json
  plimsoll gpu geometry --demand demand.yaml --fleet fleet.json --files plan --diagram plan.svg

\b
Exit status:
  0  the plan was printed
  2  an argument or a file is wrong
"""

_FILE: Final = click.Path(exists=True, dir_okay=False, allow_dash=True, path_type=Path)


@click.command(epilog=EXAMPLES)
@click.option(
    "--demand",
    required=True,
    type=_FILE,
    metavar="FILE",
    help="Read instances by GPU model and profile, in YAML or JSON; - reads standard input.",
)
@click.option(
    "--fleet",
    type=_FILE,
    metavar="FILE",
    help="Read nodes and pods, as kubectl prints them in JSON. [default: a fleet to be bought]",
)
@click.option(
    "--gpus-per-node",
    type=click.IntRange(min=1),
    metavar="NUMBER",
    help="Add nodes of so many GPUs. [default: as the fleet, else the largest instance type]",
)
@click.option("--files", metavar="FOLDER", type=Path, help="Write the files that steer nodes.")
@click.option(
    "--all-pairs", is_flag=True, help="Write every pair of geometries into the ConfigMap."
)
@click.option("--diagram", "svg", metavar="FILE", help="Draw each GPU before and after, as SVG.")
@output_option
def geometry(  # noqa: PLR0913, PLR0917 - the options of the command
    demand: Path,
    fleet: Path | None,
    gpus_per_node: int | None,
    files: Path | None,
    all_pairs: bool,
    svg: str | None,
    output: Output,
) -> None:
    """Plan the geometry of a fleet: the fewest GPUs, and few nodes that change.

    The demand counts all pods, those that stay included. `gpu` is a GPU without MIG. It changes no cluster.
    A node keeps its layout where a pod on it has no ReplicaSet or StatefulSet, or must not be disrupted.
    """
    if svg is not None:
        check_target("--diagram", svg)
    wanted = wanted_of(read("--demand", demand))
    found = Fleet() if fleet is None else fleet_of(read("--fleet", fleet))
    plans = {
        model: _plan(model, wanted.get(model, {}), found.nodes.get(model, []), gpus_per_node)
        for model in sorted(wanted)
    }
    found.notes.extend(
        f"{model} is left out: the demand does not name it"
        for model in sorted({*found.nodes} - {*wanted})
    )
    if output != "table":
        print_answer({"plans": _as_data(plans), "notes": found.notes}, output)
    else:
        _show(plans, found)
    written = files and write_files(files, plans, found, all_pairs=all_pairs)
    for path in written or ():
        say(f"wrote {path}", err=True)
    if svg is not None:
        write_target("--diagram", svg, diagram(plans))


def _plan(
    model: str, wanted: Mapping[str, int], nodes: list[GpuNode], per_node: int | None
) -> FleetPlan:
    geometries = geometries_of(CARDS[model])
    sizes = Counter(len(node.layout) for node in nodes)
    usual = sizes.most_common(1)[0][0] if sizes else 0
    size = per_node or usual or max(CARDS[model].instance_types.values(), default=1)
    try:
        counts = geometries.counts(wanted)
    except BadInput as error:
        raise BadInput(f"--demand: {model}: {error}") from error
    return plan_fleet(geometries, counts, nodes, per_node=size)


def _show(plans: Mapping[str, FleetPlan], fleet: Fleet) -> None:
    out = console()
    totals = table("MODEL", "GPUS BEFORE", "AT LEAST", "IN USE", "AFTER", "NODES", "REBUILT GPUS")
    for model, plan in plans.items():
        before = sum(node.before is not None for node in plan.nodes)
        later = sum(node.after is not None for node in plan.nodes)
        numbers = (plan.before, plan.bound, plan.needed, plan.after, f"{before} to {later}")
        totals.add_row(model, *map(str, numbers), str(plan.rebuilt))
    out.print(totals)
    rows = table("NODE", "BEFORE", "AFTER", "LABEL nvidia.com/mig.config")
    for model, plan in plans.items():
        for node in plan.nodes:
            after, label = _what(model, node)
            rows.add_row(node.name, _layout(model, node.before), after, label)
    out.print(rows)
    for note in fleet.notes:
        out.print(f"note: {note}")


def _what(model: str, node: NodePlan) -> tuple[str, str]:
    if node.after is None:
        return "not needed", ""
    if not node.changed and node.before is not None:
        return "kept: a pod stays" if node.stays else "kept", ""
    return _layout(model, node.after), layout_name(geometries_of(CARDS[model]), node.after)


def _layout(model: str, layout: Layout | None) -> str:
    if layout is None:
        return "to be added"
    geometries = geometries_of(CARDS[model])
    counts = Counter(geometry_name(geometries, each) for each in layout)
    return ", ".join(f"{number} x {name}" for name, number in counts.items())


def _as_data(plans: Mapping[str, FleetPlan]) -> dict[str, Any]:
    return {
        model: {
            "gpus_before": plan.before,
            "bound": plan.bound,
            "needed": plan.needed,
            "gpus_after": plan.after,
            "rebuilt": plan.rebuilt,
            "mechanism": "device-plugin",
            "nodes": [
                {
                    "name": node.name,
                    "before": _geometries(model, node.before),
                    "after": _geometries(model, node.after),
                    "label": None
                    if node.after is None
                    else layout_name(geometries_of(CARDS[model]), node.after),
                    "changed": node.changed,
                    "stays": node.stays,
                }
                for node in plan.nodes
            ],
        }
        for model, plan in plans.items()
    }


def _geometries(model: str, layout: Layout | None) -> list[dict[str, int]] | None:
    return None if layout is None else [geometries_of(CARDS[model]).by_name(g) for g in layout]
