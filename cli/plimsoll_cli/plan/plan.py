"""`plimsoll plan`: on-demand floors, spread groups and the moves of placement; nothing is written."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import asdict, replace
from typing import Any, Final

import click

from plimsoll.domain.kubernetes import MIN_ON_DEMAND
from plimsoll.domain.placement import FloorStatus, PlacementPlan, plan_placement
from plimsoll.services.injection import injection_of
from plimsoll_cli.options import (
    Choice,
    Output,
    Terminal,
    cluster_options,
    console,
    environment_of,
    output_option,
    print_answer,
    refuse_options_before_subcommand,
    table,
)
from plimsoll_cli.plan.read_cluster import observed, status_of
from plimsoll_cli.plan.rows import DOLLARS, RESERVE_HEAD, Row, reserve_rows, rows_of
from plimsoll_cli.plan.snippet import snippet
from plimsoll_cli.plan.spot_savings import Savings, savings_of
from plimsoll_cli.targets import check_target, write_target
from plimsoll_service.adapters.price_table import price_table

EXAMPLES: Final = """\b
Examples:
  plimsoll plan --cluster harbor
  plimsoll plan --context harbor --explain shop/web
  plimsoll plan --cluster harbor --output json
  plimsoll plan --cluster harbor --html plan.html
  plimsoll plan snippet shop/web --context harbor

\b
Exit status:
  0  every floor is met, or there is none
  1  a floor is not met, or the plan names a problem
  2  an argument is wrong, or the stack or the cluster cannot be reached
"""


@click.group(epilog=EXAMPLES, invoke_without_command=True)
@click.option("--explain", metavar="NAMESPACE/NAME", help="Explain the floor of one workload.")
@click.option(
    "--html", metavar="FILE", help="Write a web page with nodes by spread group, pods and floors."
)
@cluster_options
@output_option
@click.pass_context
def plan(
    ctx: click.Context,
    explain: str | None,
    html: str | None,
    choice: Choice,
    output: Output,
) -> None:
    """Show the state of each on-demand floor, and the moves of the next run.

    A Deployment, a StatefulSet or a namespace states its floor in the annotation
    `plimsoll.dev/min-on-demand`: a number of replicas such as "2", a share such as "30%", or "auto".
    `plimsoll clusters set --min-on-demand` sets the floor of all other workloads.
    """
    if ctx.invoked_subcommand is not None:
        refuse_options_before_subcommand(ctx)
        return
    if html is not None:
        check_target("--html", html)
    environment = environment_of(ctx)
    (api, seen), now = observed(environment, choice), environment.clock.now()
    found = plan_placement(
        seen, now, namespaces=api.namespace_floors(), injection=injection_of(api)[0]
    )
    savings = savings_of(seen, found, price_table())
    status = None if explain is None else status_of(found, explain)
    if output != "table":
        shown = found if status is None else replace(found, workloads=(status,))
        print_answer(_as_data(shown, savings), output)
    elif status is not None:
        _explain(status, savings)
    else:
        _show(found, savings)
    if html is not None:
        from plimsoll_cli.lab.plan_page import plan_page  # noqa: PLC0415 - needs the testbed

        name = choice.cluster or seen.cluster
        write_target("--html", html, plan_page(name, seen, found, savings, now=now))
    if found.problems or not all(status.met for status in found.workloads):
        ctx.exit(1)


plan.add_command(snippet)


def _explain(status: FloorStatus, savings: Savings) -> None:
    floor = status.floor
    saving = savings.of(floor.workload)
    out = console()
    out.print(f"{floor.workload}: {floor.keep} of {floor.replicas} replicas on on-demand")
    out.print(f"way: {floor.way}, because {floor.reason}")
    stands = ", ".join(f"{count} on {where}" for where, count in sorted(status.ready.items()))
    out.print(f"stands: {stands or 'nowhere'}; Pending: {status.pending}")
    out.print(
        f"saves: {DOLLARS.format(saving.now)} a month; with {saving.spot} on spot "
        f"{DOLLARS.format(saving.then)} ({savings.prices})"
    )
    if status.lacks is not None:
        name = f"{floor.workload.namespace}/{floor.workload.name}"
        out.print(f"lacks: {status.lacks}; `plimsoll plan snippet {name}` prints it")


def _show(found: PlacementPlan, savings: Savings) -> None:
    out = console()
    if not found.workloads:
        out.print(f"no workload has an on-demand floor: annotate one with {MIN_ON_DEMAND}")
    else:
        _print(out, Row.HEAD, [row.cells for row in rows_of(found, savings)])
    if savings.others:
        others = ", ".join(f"{n} on {where}" for where, n in sorted(savings.others.items()))
        out.print(f"pods without a floor: {others}")
    out.print(f"spot saves {DOLLARS.format(savings.now)} a month now ({savings.prices})")
    for name, nodes in sorted(savings.unpriced.items()):
        out.print(f"no price for {name}: its {nodes} spot nodes count as saving nothing")
    if found.groups:
        groups = [
            (str(g.spot_groups), g.name, str(len(g.nodes)), "yes" if g.opened else "no", g.reason)
            for g in found.groups
        ]
        _print(out, ("spread over", "group", "nodes", "open", "because"), groups)
    if found.reserve:
        _print(out, RESERVE_HEAD, reserve_rows(found))
    for problem in found.problems:
        out.print(f"problem: {problem}")
    for step in found.steps:
        out.print(f"would {step}")
    if found.held is not None and found.workloads:
        out.print(f"Plimsoll moves no pod: {found.held}")


def _print(out: Terminal, head: Sequence[str], rows: Iterable[Sequence[str]]) -> None:
    shown = table(*(name.upper() for name in head))
    for row in rows:
        shown.add_row(*row)
    out.print(shown)


def _as_data(found: PlacementPlan, savings: Savings) -> dict[str, Any]:
    return {
        "workloads": [
            asdict(status)
            | {
                "workload": str(status.floor.workload),
                "floor": asdict(status.floor) | {"workload": str(status.floor.workload)},
                "met": status.met,
                "saving": asdict(savings.of(status.floor.workload)),
            }
            for status in found.workloads
        ],
        "others": savings.others,
        "saves": round(savings.now, 2),
        "prices": savings.prices,
        "unpriced": savings.unpriced,
        "groups": [asdict(group) for group in found.groups],
        "reserve": [asdict(loss) | {"covered": round(loss.covered, 4)} for loss in found.reserve],
        "problems": found.problems,
        "steps": [str(step) for step in found.steps],
        "held": found.held,
    }
