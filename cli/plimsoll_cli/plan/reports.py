"""`plimsoll reports`: the reports of past interruptions.

A cluster in the mode observe has reports too. They hold the actions that Plimsoll would have taken,
without times.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import datetime
from functools import partial
from typing import Any, Final

import click

from plimsoll.domain.drain import added_by_group
from plimsoll.domain.errors import BadInput, PlimsollError
from plimsoll.domain.placement import reports_of
from plimsoll.domain.reports import (
    Comparison,
    Reason,
    Report,
    compare_rehearsals,
    rehearsals_of,
    summary,
)
from plimsoll_cli.environment import Deployed, warn
from plimsoll_cli.options import (
    Output,
    Terminal,
    clock_text,
    console,
    environment_of,
    output_option,
    print_answer,
    print_screen,
    refuse_options_before_subcommand,
    registered,
    stack_option,
    table,
    verbose_option,
)
from plimsoll_cli.plan.pools import pools
from plimsoll_cli.plan.promises import promises
from plimsoll_cli.terminal import first_of, say

EXAMPLES: Final = """\b
Examples:
  plimsoll reports
  plimsoll reports --cluster harbor --limit 20 --output json
  plimsoll reports show i-0b662ef9931388ba0
  plimsoll reports show i-0b662ef9931388ba0 --verbose
  plimsoll reports --profile harbor-prod --profile quay-prod
  plimsoll reports pools
  plimsoll reports promises

\b
Exit status:
  0  the reports were printed, if there are any
  2  an argument is wrong, or a stack cannot be reached; the reports of other stacks are printed
"""

type Compare = Callable[[Report], Comparison | None]

REHEARSED: Final = 2000
"""How many of a cluster's newest rehearsals are searched: one for each node of each."""
LISTED: Final = 5
"""How many workloads or pods a line of a report names."""
SEARCHED: Final = 1000
"""How many of a cluster's newest reports `show` searches."""

STEPS: Final[Mapping[str, str]] = {
    # heading -> the moment of the report; each is shown as seconds after the notice
    "CORDON": "cordoned",
    "CAPACITY": "capacity_asked",
    "REPLACED": "replaced",
    "EMPTY": "emptied",
    "GONE": "gone",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Listed:
    """One row of the list."""

    account: str
    """Of the stack that keeps the report."""
    report: Report
    compared: Comparison | None


cluster_option: Final = click.option(
    "--cluster", metavar="NAME", help="Use this registered cluster. [default: all]"
)


@click.group(epilog=EXAMPLES, invoke_without_command=True)
@cluster_option
@click.option(
    "--limit",
    type=click.IntRange(min=1),
    default=20,
    show_default=True,
    help="List this many of the newest reports.",
)
@click.option(
    "--profile",
    "profiles",
    multiple=True,
    metavar="NAME",
    help="Read the stack in the account and region of this AWS profile. Repeat it to list the reports of "
    "several accounts together.",
)
@output_option
@stack_option
@click.pass_context
def reports(  # noqa: PLR0913, PLR0917 - the options of the command
    ctx: click.Context,
    cluster: str | None,
    limit: int,
    profiles: tuple[str, ...],
    output: Output,
    stack: str,
) -> None:
    """List the reports of interruptions, and a daily report of placement, newest first.

    Times are in seconds after the notice: until Plimsoll cordoned the node, requested capacity, had all
    replacements Ready and the node empty, and until the instance was gone.
    """
    if ctx.invoked_subcommand is not None:
        refuse_options_before_subcommand(ctx)
        return
    environment = environment_of(ctx)
    found: list[Listed] = []
    failed = False
    for profile in profiles or (None,):
        try:
            deployed = environment.deployed(stack, profile)
            if len(profiles) > 1 and cluster not in {None, *deployed.registry.names()}:
                continue  # it is a cluster of another of these accounts
            found += _listed(deployed, cluster, limit)
        except PlimsollError as error:
            if len(profiles) <= 1:
                raise
            warn(f"profile {profile}: {error}")
            failed = True
    found = sorted(found, key=lambda listed: listed.report.noticed, reverse=True)[:limit]
    if output != "table":
        print_answer(
            {"reports": [{**_as_data(o.report, o.compared), "account": o.account} for o in found]},
            output,
        )
    elif not found:
        say("There is no report yet: each interruption makes one.")
    else:
        _show_table(console(), found, accounts=len(profiles) > 1)
    if failed:
        ctx.exit(2)


@reports.command(epilog=EXAMPLES)
@click.argument("interruption", metavar="ID")
@cluster_option
@verbose_option
@output_option
@stack_option
@click.pass_context
def show(  # noqa: PLR0913, PLR0917 - the options of the command
    ctx: click.Context,
    interruption: str,
    cluster: str | None,
    verbose: bool,
    output: Output,
    stack: str,
) -> None:
    """Show a report: what was done for which workload, why and when.

    Urgent lines come first: pods that left before their replacements were Ready, and what was refused.
    Without --verbose a report fits 40 lines: workloads of one cause share a line where there are too many.

    ID is an instance id, or the id of an interruption (INSTANCE@LAUNCH TIME). An instance that was
    stopped and started again may have several interruptions.
    """
    deployed = environment_of(ctx).deployed(stack)
    newest = _newest(deployed, cluster, SEARCHED)
    found = [
        report
        for report in newest
        if interruption in {report.interruption, report.interruption.partition("@")[0]}
    ]
    if not found:
        raise BadInput(
            f"there is no report of {interruption} among the newest {SEARCHED} of each cluster: "
            "`plimsoll reports` lists them"
        )
    compare = _comparing(deployed, newest)
    if output != "table":
        print_answer({"reports": [_as_data(report, compare(report)) for report in found]}, output)
        return
    for report in found:
        print_screen(
            partial(_lines_of, report, compare(report), verbose=verbose),
            verbose=verbose,
            command=f"plimsoll reports show {report.interruption} --verbose",
        )


reports.add_command(pools)
reports.add_command(promises)


def _listed(deployed: Deployed, cluster: str | None, limit: int) -> Iterator[Listed]:
    found = _newest(deployed, cluster, limit)
    compare = _comparing(deployed, found)
    for report in found[:limit]:
        yield Listed(account=deployed.stack.account, report=report, compared=compare(report))


def _comparing(deployed: Deployed, found: Sequence[Report]) -> Compare:
    """Return what holds a report against the rehearsals of its cluster."""
    names = sorted({report.cluster for report in found if not report.cluster.startswith("*")})
    rehearsals = {
        name: deployed.reports.list(rehearsals_of(name), limit=REHEARSED) for name in names
    }
    of_cluster = {
        name: deployed.reports.list(name, limit=SEARCHED) if rehearsals[name] else ()
        for name in names
    }
    return lambda report: compare_rehearsals(
        report, of_cluster.get(report.cluster, ()), rehearsals.get(report.cluster, ())
    )


def _newest(deployed: Deployed, name: str | None, limit: int) -> Sequence[Report]:
    """Return the newest reports of each cluster, the newest of all first."""
    names = deployed.registry.names()
    if name is not None:
        names = [name] if name in names else [registered(deployed, name).name]
    if not names:
        warn("no cluster is registered: add one with `plimsoll clusters add NAME`")
    under = [key for one in names for key in (one, reports_of(one))]
    found = [report for key in under for report in deployed.reports.list(key, limit=limit)]
    return sorted(found, key=lambda report: report.noticed, reverse=True)


def _show_table(out: Terminal, found: Sequence[Listed], *, accounts: bool) -> None:
    last = ["LOWEST READY", "KILLED"] + ["PREDICTED"] * any(o.compared for o in found)
    first = [*["ACCOUNT"] * accounts, "INSTANCE"]
    shown = table(*first, "CLUSTER", "NODE", "KIND", "NOTICE", *STEPS, *last)
    for listed in found:
        report = listed.report
        shown.add_row(
            *[listed.account] * accounts,
            report.interruption.partition("@")[0],
            report.cluster,
            report.node,
            report.kind,
            clock_text(report.noticed),
            *(_after(report, step) for step in STEPS.values()),
            _lowest(report, LISTED),
            str(len(report.killed)),
            *([_predicted(listed.compared)] if "PREDICTED" in last else ()),
        )
    out.print(shown)


def _lines_of(
    report: Report, compared: Comparison | None, most: int, *, verbose: bool
) -> Sequence[str]:
    """Return the lines of a report, at most about so many."""
    head = [*_head(report, compared, verbose=verbose)]
    if not verbose:
        lines = summary(report.reasons, max(1, most - len(head)))
        return [*head, *(f"  - {line}" for line in lines)]
    return [*head, *(line for reason in report.reasons for line in _whole(reason))]


def _whole(reason: Reason) -> Iterator[str]:
    """Yield a reason, and each of its pods where there are several."""
    yield f"  - {reason.timed}"
    if len(reason.pods) > 1:
        yield from (f"      Pod {pod}" for pod in reason.pods)


def _head(report: Report, compared: Comparison | None, *, verbose: bool) -> Iterator[str]:
    node = f" on {report.node}" if report.node else ""
    yield f"{report.interruption}: {report.kind}{node} in {report.cluster}"
    yield f"  notice        {clock_text(report.noticed)}"
    yield f"  deadline      {clock_text(report.deadline) or 'none'}"
    steps = (f"{heading.lower()} {_after(report, step)}" for heading, step in STEPS.items())
    yield f"  after notice  {', '.join(steps)}"
    yield f"  closed        {clock_text(report.closed) or 'not yet'}"
    most = None if verbose else LISTED
    yield f"  lowest ready  {_lowest(report, most)}"
    yield f"  killed        {first_of(report.killed, most) or 'none'}"
    if compared is not None:
        yield from _comparison(compared, most)
    if verbose:
        yield from (
            f"  overruled     {pod}: {refusal}" for pod, refusal in report.overruled.items()
        )
    elif report.overruled:
        yield f"  overruled     {len(report.overruled)} budgets, for {first_of([*report.overruled], most)}"
    for group, nodes in added_by_group(report).items():
        yield f"  nodes added   {group}: {nodes:+d}"
    yield from (f"  no nodes      {refusal}" for refusal in report.refused.values())
    below = [f"{workload} by {short}" for workload, short in report.below_floor.items()]
    if below:
        yield f"  below floor   {first_of(below, most)}"


def _comparison(compared: Comparison, most: int | None) -> Iterator[str]:
    """Yield the prediction of a rehearsal beside the facts, the wrong ones first."""
    yield (
        f"  predicted     at {clock_text(compared.rehearsed)}, for {compared.scope}: of "
        f"{compared.nodes_predicted} predicted nodes {compared.nodes_of_these} were interrupted, and "
        f"{compared.nodes_besides} others"
    )
    told, happened = compared.emptied
    if told is not None and happened is not None:
        yield f"                empty after {told:g} s, actually {happened:g} s"
    pairs = sorted(compared.lowest_ready.items(), key=lambda item: item[1][0] == item[1][1])
    for name, (least, came) in pairs[:most]:
        end = "as predicted" if least == came else f"actually {came}"
        yield f"                {name}: lowest ready {least}, {end}"
    if left := len(pairs) - len(pairs[:most]):
        yield f"                and {left} more workloads"


def _predicted(compared: Comparison | None) -> str:
    if compared is None or not compared.lowest_ready:
        return "-"
    wrong, of = len(compared.wrong), len(compared.lowest_ready)
    return f"{of - wrong} of {of} correct"


def _lowest(report: Report, most: int | None = None) -> str:
    """Return the lowest Ready counts, the lowest first."""
    lowest = sorted(report.lowest_ready.items(), key=lambda item: item[1])
    return first_of([f"{name}: {ready}" for name, ready in lowest], most) or "-"


def _seconds(report: Report, step: str) -> float | None:
    moment: datetime | None = getattr(report, step)
    return None if moment is None else round((moment - report.noticed).total_seconds(), 1)


def _after(report: Report, step: str) -> str:
    seconds = _seconds(report, step)
    return "-" if seconds is None else f"{seconds:g} s"


def _as_data(report: Report, compared: Comparison | None) -> Mapping[str, Any]:
    return {
        "interruption": report.interruption,
        "cluster": report.cluster,
        "node": report.node,
        "kind": report.kind,
        "noticed": report.noticed,
        "deadline": report.deadline,
        "closed": report.closed,
        "seconds_after_notice": {step: _seconds(report, step) for step in STEPS.values()},
        "lowest_ready": dict(report.lowest_ready),
        "below_floor": dict(report.below_floor),
        "overruled": dict(report.overruled),
        "added": dict(added_by_group(report)),
        "refused": dict(report.refused),
        "killed": report.killed,
        "reasons": [
            {
                "first": reason.first,
                "last": reason.last,
                "urgent": reason.urgent,
                "action": reason.verb.rstrip(":"),
                "about": reason.about,
                "pods": reason.pods,
                "because": reason.why,
            }
            for reason in report.reasons
        ],
        "predicted": None if compared is None else asdict(compared),
    }
