"""`plimsoll status`: the open interruptions of clusters, read from their objects."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, replace
from datetime import datetime
from typing import Final

import click
from rich.table import Table

from plimsoll.domain.errors import PlimsollError, Temporary
from plimsoll_cli.cluster.open_interruptions import ZONES, Status, ZoneNotice, status_of, zones_of
from plimsoll_cli.environment import Environment, warn
from plimsoll_cli.options import (
    Choice,
    Output,
    clock_text,
    cluster_options,
    environment_of,
    output_option,
    print_answer,
    print_screen,
    registered,
    table,
    unregistered,
    verbose_option,
)

EXAMPLES: Final = """\b
Examples:
  plimsoll status
  plimsoll status --cluster harbor --output json
  plimsoll status --verbose
  plimsoll status --kubeconfig ~/.kube/config --context harbor

\b
Exit status:
  0  every cluster was read
  2  an argument is wrong, or the stack or a cluster cannot be reached
"""


@click.command(epilog=EXAMPLES)
@cluster_options
@verbose_option
@output_option
@click.pass_context
def status(
    ctx: click.Context,
    choice: Choice,
    verbose: bool,
    output: Output,
) -> None:
    """Show open interruptions, released pods and zonal shifts.

    Without --cluster, the command shows all registered clusters. It reads interruptions from the
    Nodes, releases from the pods, and zonal shifts from the reports of the stack. The nearest deadlines
    come first, and the answer fits 40 lines; --verbose has all.
    """
    environment = environment_of(ctx)
    found, zones, failed = _read(environment, choice)
    now = environment.clock.now()
    if output != "table":
        print_answer(
            {
                "at": now,
                "clusters": [asdict(one) for one in found],
                "zones": [asdict(zone) for zone in zones],
                "not_read": failed,
            },
            output,
        )
    else:
        print_screen(
            lambda most: [*screen_lines(found, zones, now, most)],
            verbose=verbose,
            command="plimsoll status --verbose",
        )
    if failed:
        raise Temporary("cannot be read: " + "; ".join(f"{k}: {v}" for k, v in failed.items()))


def _read(
    environment: Environment, choice: Choice
) -> tuple[Sequence[Status], Sequence[ZoneNotice], Mapping[str, str]]:
    """Read every cluster; a cluster that does not answer does not hide the others."""
    if choice.by_kubeconfig:
        _, api = unregistered(environment, choice)
        return [status_of(api.observe())], (), {}
    deployed = environment.deployed(choice.stack)
    if choice.cluster is not None:
        wanted = [registered(deployed, choice.cluster)]
    else:
        wanted = list(deployed.registry.list())
        if not wanted:
            warn("no cluster is registered: add one with `plimsoll clusters add NAME`")
    found, failed = [], {}
    for cluster in wanted:
        try:
            seen = deployed.clusters.open(cluster).observe()
            found.append(status_of(replace(seen, policy=cluster.policy)))
        except PlimsollError as error:
            failed[cluster.name] = str(error)
    return found, zones_of(deployed.reports.list(ZONES)), failed


def screen_lines(
    found: Sequence[Status], zones: Sequence[ZoneNotice], now: datetime, most: int
) -> Iterator[str | Table]:
    """Yield what is open, the urgent first: at most so many nodes, workloads and quiet clusters."""
    for zone in zones:
        yield f"zone {zone.zone}, since {clock_text(zone.noticed)}: {zone.reason}"
    for one in found:
        if not one.quiet:
            yield from _cluster(one, now, most)
    quiet = [one for one in found if one.quiet]
    yield from (f"{one.cluster}: nothing is open; {one.policy}" for one in quiet[:most])
    if left := quiet[most:]:
        yield f"{len(left)} more clusters: nothing is open"


def _cluster(one: Status, now: datetime, most: int) -> Iterator[str | Table]:
    if one.interruptions:
        shown = table(
            "NODE",
            "KIND",
            "NOTICED",
            "DEADLINE",
            "PHASE",
            "PODS LEFT",
            title=f"{one.cluster}: open interruptions",
        )
        for i in one.interruptions[:most]:
            shown.add_row(
                i.node,
                i.kind,
                clock_text(i.noticed) or "unknown",
                _deadline(i.deadline, now),
                i.phase if i.unreadable is None else f"unreadable: {i.unreadable}",
                str(len(i.pods_left)),
            )
        yield shown
        if left := one.interruptions[most:]:
            pods = sum(len(i.pods_left) for i in left)
            yield f"{len(left)} more nodes with {pods} pods left; the next deadline is {_deadline(left[0].deadline, now)}"
    if len(one.released_pods) <= most:
        for pod in one.released_pods:
            yield f"{one.cluster}: {pod} is released and serves until its replacement is available"
    else:
        pods, released = len(one.released_pods), [*one.released_of.items()]
        yield f"{one.cluster}: {pods} pods are released and serve until their replacements are available:"
        yield from (f"  {count} of {workload}" for workload, count in released[:most])
        if rest := released[most:]:
            yield f"  {sum(count for _, count in rest)} of {len(rest)} more workloads"
    yield f"{one.cluster}: {one.policy}"


def _deadline(deadline: datetime | None, now: datetime) -> str:
    if deadline is None:
        return "none"
    left = round((deadline - now).total_seconds())
    return f"{clock_text(deadline)} ({f'in {left} s' if left >= 0 else f'{-left} s ago'})"
