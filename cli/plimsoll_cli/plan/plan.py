"""`plimsoll plan`: on-demand floors, spread groups and the moves of placement; nothing is written."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass, replace
from functools import wraps
from typing import Any, Final

import click

from plimsoll.domain.capacity import StartWindows
from plimsoll.domain.kubernetes import MIN_ON_DEMAND
from plimsoll.domain.placement import FloorStatus, PlacementPlan, Promise, plan_placement
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
from plimsoll_cli.plan.load_lines import LoadLines, not_promised, short_name
from plimsoll_cli.plan.read_cluster import facts_of, layouts_of, observed
from plimsoll_cli.plan.rows import (
    DOLLARS,
    RESERVE_HEAD,
    head_of,
    placement_of,
    reserve_rows,
    rows_of,
)
from plimsoll_cli.plan.snippet import snippet
from plimsoll_cli.plan.spot_savings import Savings, savings_of
from plimsoll_cli.targets import check_target, write_target
from plimsoll_console.exports import exported
from plimsoll_console.reading import loads_by
from plimsoll_console.sources import ClusterState
from plimsoll_console.views.cluster import cluster
from plimsoll_service.adapters.price_table import price_table

EXAMPLES: Final = """\b
Examples:
  plimsoll plan --cluster harbor
  plimsoll plan --context harbor --explain shop/web
  plimsoll plan --cluster harbor --output json
  plimsoll plan --cluster harbor --html plan.html
  plimsoll plan --cluster harbor --keep-ready "60%, 99.7%"
  plimsoll plan --cluster harbor --keep-ready 60% --explain shop/web
  plimsoll plan snippet shop/web --context harbor

\b
Exit status:
  0  every floor is met, or there is none
  1  a floor is not met, or the plan names a problem
  2  an argument is wrong, or the stack or the cluster cannot be reached
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Shown:
    """What of a plan is shown."""

    explain: str | None
    """One workload, as `namespace/name`."""
    html: str | None
    promise: Promise | None


def shown_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add the options that say what is shown; the command takes them as its `shown`."""

    @wraps(command)
    def chosen(
        *given: Any, explain: str | None, html: str | None, keep_ready: str | None, **options: Any
    ) -> Any:
        promise = None if keep_ready is None else Promise.parse(keep_ready)
        return command(*given, shown=Shown(explain=explain, html=html, promise=promise), **options)

    wrapped: Callable[..., Any] = chosen
    for option in (
        click.option(
            "--keep-ready",
            metavar="N|N%[, TIME%]",
            help="Show LINE and KEPT as if this were promised of each Deployment of which nothing is. [default of the "
            "time: 99.9%]",
        ),
        click.option(
            "--html",
            metavar="FILE",
            help="Write a web page with load lines, floors, promises, reserve, and nodes by spread group. It needs no network.",
        ),
        click.option(
            "--explain",
            metavar="NAMESPACE/NAME",
            help="Explain the floor and the promise of one workload.",
        ),
    ):
        wrapped = option(wrapped)
    return wrapped


@click.group(epilog=EXAMPLES, invoke_without_command=True)
@shown_options
@cluster_options
@output_option
@click.pass_context
def plan(ctx: click.Context, shown: Shown, choice: Choice, output: Output) -> None:
    """Show the state of each on-demand floor, and the moves of the next run.

    A Deployment, a StatefulSet or a namespace states its floor in the annotation
    `plimsoll.dev/min-on-demand`: a number of replicas such as "2", a share such as "30%", or "auto".
    `plimsoll clusters set --min-on-demand` sets the floor of all other workloads.

    A Deployment or a namespace states in `plimsoll.dev/keep-ready` how many replicas are to be Ready, and for how much
    of the time; `plimsoll clusters set --keep-ready` promises it of all others. LINE shows the replicas, KEPT for how
    much of the time they are Ready as the workload stands now, and CHEAPEST the layout that keeps the promise at the
    least cost. `--explain` prints what this follows from, and how such predictions were met. `--keep-ready` shows the
    same for a promise that nobody made yet.
    """
    if ctx.invoked_subcommand is not None:
        refuse_options_before_subcommand(ctx)
        return
    if shown.html is not None:
        check_target("--html", shown.html)
    environment = environment_of(ctx)
    (api, seen), now = observed(environment, choice), environment.clock.now()
    facts, injection = facts_of(environment, choice, api, now), injection_of(api)[0]
    chosen = layouts_of(environment, choice, facts, seen, injection.told)
    found = plan_placement(seen, now, namespaces=facts.floors, injection=injection, chosen=chosen)
    whole, savings = found, savings_of(seen, found, price_table())
    lines = LoadLines.of(shown.promise, StartWindows(seen=seen, now=now), facts)
    if shown.explain is not None:
        found, lines = _only(found, lines, shown.explain)
    if output != "table":
        print_answer(_as_data(found, savings, lines), output)
    elif shown.explain is not None:
        _explain(found, savings, lines)
    else:
        _show(found, savings, lines)
    if shown.html is not None:
        state = ClusterState(
            name=seen.cluster,
            at=now,
            seen=seen,
            loads=loads_by(seen, whole),
            placement=placement_of(seen, found, savings, lines),
        )
        write_target("--html", shown.html, exported(cluster, state))
    if found.problems or not all(status.met for status in found.workloads):
        ctx.exit(1)


plan.add_command(snippet)


def _only(found: PlacementPlan, lines: LoadLines, name: str) -> tuple[PlacementPlan, LoadLines]:
    """Return what is said of one workload.

    Raises:
        BadInput: nothing is said of it.
    """
    floors = tuple(s for s in found.workloads if short_name(s.floor.workload) == name)
    promised = lines.only(name)
    if not (floors or promised.promises):
        raise not_promised(name)
    return replace(found, workloads=floors), promised


def _explain(found: PlacementPlan, savings: Savings, lines: LoadLines) -> None:
    for status in found.workloads:
        _explain_floor(status, savings)
    for workload in lines.promises:
        for words in lines.arithmetic(workload):
            console().print(words)


def _explain_floor(status: FloorStatus, savings: Savings) -> None:
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


def _show(found: PlacementPlan, savings: Savings, lines: LoadLines) -> None:
    out = console()
    if not found.workloads:
        out.print(f"no workload has an on-demand floor: annotate one with {MIN_ON_DEMAND}")
    if rows := rows_of(found, savings, lines):
        _print(out, head_of(lines), [row.cells for row in rows])
    if savings.others:
        others = ", ".join(f"{n} on {where}" for where, n in sorted(savings.others.items()))
        out.print(f"pods without a floor: {others}")
    out.print(f"spot saves {DOLLARS.format(savings.now)} a month now ({savings.prices})")
    for name, nodes in sorted(savings.unpriced.items()):
        out.print(f"no price for {name}: its {nodes} spot nodes count as saving nothing")
    if found.groups:
        groups = [
            (g.layout.entry, g.name, str(len(g.nodes)), "yes" if g.opened else "no", g.reason)
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


def _as_data(found: PlacementPlan, savings: Savings, lines: LoadLines) -> dict[str, Any]:
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
        "lines": lines.data,
    }
