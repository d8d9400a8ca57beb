"""`plimsoll status`: the open interruptions of clusters, read from their objects."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from datetime import datetime
from typing import Final

import click

from plimsoll.domain.errors import PlimsollError, Temporary
from plimsoll_cli.cluster.open_interruptions import ZONES, Status, ZoneNotice, status_of, zones_of
from plimsoll_cli.environment import Environment, warn
from plimsoll_cli.options import (
    Choice,
    Output,
    Terminal,
    clock_text,
    cluster_options,
    console,
    environment_of,
    output_option,
    print_answer,
    registered,
    table,
    unregistered,
)

EXAMPLES: Final = """\b
Examples:
  plimsoll status
  plimsoll status --cluster harbor --output json
  plimsoll status --kubeconfig ~/.kube/config --context harbor

\b
Exit status:
  0  every cluster was read
  2  an argument is wrong, or the stack or a cluster cannot be reached
"""


@click.command(epilog=EXAMPLES)
@cluster_options
@output_option
@click.pass_context
def status(
    ctx: click.Context,
    choice: Choice,
    output: Output,
) -> None:
    """Show open interruptions, released pods and zonal shifts.

    Without --cluster, the command shows all registered clusters. It reads interruptions from the
    Nodes, releases from the pods, and zonal shifts from the reports of the stack.
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
        _show(found, zones, now)
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


def _show(found: Sequence[Status], zones: Sequence[ZoneNotice], now: datetime) -> None:
    out = console()
    for one in found:
        if one.quiet:
            out.print(f"{one.cluster}: nothing is open")
        else:
            _show_cluster(out, one, now)
        out.print(f"{one.cluster}: {one.policy}")
    for zone in zones:
        out.print(f"zone {zone.zone}, since {clock_text(zone.noticed)}: {zone.reason}")


def _show_cluster(out: Terminal, one: Status, now: datetime) -> None:
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
        for i in one.interruptions:
            shown.add_row(
                i.node,
                i.kind,
                clock_text(i.noticed) or "unknown",
                _deadline(i.deadline, now),
                i.phase if i.unreadable is None else f"unreadable: {i.unreadable}",
                str(len(i.pods_left)),
            )
        out.print(shown)
    for pod in one.released_pods:
        out.print(f"{one.cluster}: {pod} is released and serves until its replacement is available")


def _deadline(deadline: datetime | None, now: datetime) -> str:
    if deadline is None:
        return "none"
    left = round((deadline - now).total_seconds())
    return f"{clock_text(deadline)} ({f'in {left} s' if left >= 0 else f'{-left} s ago'})"
