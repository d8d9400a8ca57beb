"""`plimsoll queues`: check, apply and run a configuration of queues, and plan a snapshot in a file."""

from __future__ import annotations

from datetime import datetime, timedelta
from pathlib import Path
from typing import Any, Final, override
from uuid import uuid4

import click
import yaml

from plimsoll.adapters.workers import ThreadWorkers
from plimsoll.domain.fields import parse_time
from plimsoll_batch.adapters.kubernetes.cluster import KubernetesQueues
from plimsoll_batch.adapters.snapshot_file import state_of
from plimsoll_batch.domain.admission import QueuePlan, plan_queues
from plimsoll_batch.domain.explanation import in_words, why
from plimsoll_batch.services.queues import QueueService
from plimsoll_cli.batch.apply import apply, file_option
from plimsoll_cli.batch.framework_manifests import manifests
from plimsoll_cli.batch.gangs import explained
from plimsoll_cli.batch.list_queues import list_command
from plimsoll_cli.batch.read_queues import read_queues, read_snapshot
from plimsoll_cli.environment import Said, warn
from plimsoll_cli.options import (
    Output,
    environment_of,
    kubeconfig_options,
    output_option,
    print_answer,
)
from plimsoll_cli.terminal import say

EXAMPLES: Final = """\b
Examples:
  plimsoll queues check -f queues.yaml
  plimsoll queues apply -f queues.yaml --context harbor
  plimsoll queues list --context harbor
  plimsoll queues manifests --frameworks jobset,ray | kubectl apply -f -
  plimsoll queues plan -f queues.yaml --snapshot snapshot.yaml
  plimsoll queues why lab/train -f queues.yaml --snapshot snapshot.yaml

\b
Exit status:
  0  the command succeeded
  1  there is no such waiting gang
  2  a file is invalid, and the message names every problem and its place; or the cluster refuses
"""

RUN_SECONDS: Final = 60.0
PAUSE_SECONDS: Final = 1.0

_SNAPSHOT = click.option(
    "--snapshot",
    required=True,
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="Read nodes and gangs, in YAML or JSON.",
)
_AT = click.option(
    "--at", metavar="TIME", help="Plan at this time, such as 2026-11-17T14:00:00Z. [default: now]"
)


@click.group(epilog=EXAMPLES)
def queues() -> None:
    """List, check, apply, plan and run batch queues.

    Only `apply` and `run` write to a cluster.
    """


@queues.command()
@file_option
@click.option(
    "--print",
    "printed",
    is_flag=True,
    help="Print the file, also where it was made of objects of Kueue.",
)
def check(file: Path, printed: bool) -> None:
    """Check a configuration, and print every problem with its place.

    A file of Kueue's ResourceFlavors, Cohorts, ClusterQueues and LocalQueues is converted first.
    """
    read = read_queues(file)
    for note in read.notes:
        warn(note)
    if printed:
        say(yaml.safe_dump(read.document, sort_keys=False), nl=False)
        return
    found = read.configuration
    say(
        f"{file} is valid: queues {len(found.queues)}, cohorts {len(found.cohorts)},"
        f" flavors {len(found.flavors)}"
    )


queues.add_command(apply)
queues.add_command(list_command)
queues.add_command(manifests)


@queues.command()
@file_option
@_SNAPSHOT
@_AT
@output_option
@click.pass_context
def plan(ctx: click.Context, file: Path, snapshot: Path, at: str | None, output: Output) -> None:
    """Show which gangs start now, which are preempted, and why the others wait."""
    seen = state_of(read_snapshot(snapshot), read_queues(file).configuration)
    found = rows(plan_queues(seen, _time(ctx, at)))
    if output != "table":
        print_answer(found, output)
        return
    for row in found:
        say(f"{row['decision']:<9} {', '.join(row['gangs'])}: {row['reason']}")
        for line in row.get("victims", ()):
            say(f"          stops {line['gang']}: {line['reason']}")


@queues.command(name="run")
@kubeconfig_options
@click.option(
    "--seconds", type=click.FloatRange(min=1), help="Stop after this time. [default: never]"
)
@click.pass_context
def run_command(
    ctx: click.Context, context: str | None, kubeconfig: Path | None, seconds: float | None
) -> None:
    """Run the queues of a cluster until Ctrl-C.

    Use it for trials, or for a cluster without a stack. It takes the same Lease as the stack's planner.
    """
    environment = environment_of(ctx)
    name, api = environment.by_kubeconfig(kubeconfig, context)
    workers = ThreadWorkers()
    clock = environment.clock
    cluster = KubernetesQueues(api.requests, clock, workers=workers, warn=warn)
    service = QueueService(
        name=name, cluster=cluster, clock=clock, workers=workers, telemetry=_Steps()
    )
    end = None if seconds is None else clock.now() + timedelta(seconds=seconds)
    holder = f"plimsoll-queues-{uuid4()}"
    try:
        while end is None or clock.now() < end:
            left = RUN_SECONDS if end is None else (end - clock.now()).total_seconds()
            service.run(holder=holder, seconds=min(RUN_SECONDS, left))
            clock.sleep(PAUSE_SECONDS)
    finally:
        workers.close()


class _Steps(Said):
    """Prints each step on standard output."""

    @override
    def log(self, message: str, **facts: object) -> None:
        say(f"{message}: {facts['gang']}: {facts['because']}" if "gang" in facts else message)


@queues.command(name="why")
@click.argument("gang", metavar="NAMESPACE/NAME")
@file_option
@_SNAPSHOT
@_AT
@output_option
@click.pass_context
def why_command(  # noqa: PLR0913, PLR0917 - the options of the command
    ctx: click.Context, gang: str, file: Path, snapshot: Path, at: str | None, output: Output
) -> None:
    """Explain why a gang waits, which gangs must end first, and when."""
    seen = state_of(read_snapshot(snapshot), read_queues(file).configuration)
    found = why(seen, gang, _time(ctx, at))
    if found is None:
        say(f"no gang {gang} waits", err=True)
        ctx.exit(1)
    if output != "table":
        print_answer(explained(found), output)
    else:
        say(in_words(found))


def rows(plan: QueuePlan) -> list[dict[str, Any]]:
    """Return the decisions of a plan as they are shown."""
    found: list[dict[str, Any]] = [
        {
            "decision": "start",
            "gangs": [str(each.gang)],
            "reason": each.reason,
            "flavors": {role: list(flavors) for role, flavors in each.flavors.items()},
            "nodes": {} if each.place is None else each.place.nodes,
        }
        for each in plan.admitted
    ]
    found += [
        {
            "decision": "preempt",
            "gangs": [str(each.gang)],
            "reason": each.reason,
            "victims": [
                {"gang": str(v.holder.running.gang), "reason": v.reason} for v in each.victims
            ],
        }
        for each in plan.preempting
    ]
    found += [
        {"decision": "reserve", "gangs": [str(each.gang)], "reason": each.reason}
        for each in plan.reserved
    ]
    found += [
        {"decision": "await", "gangs": [str(each.gang)], "reason": each.reason}
        for each in plan.awaiting
    ]
    found += [
        {"decision": "wait", "gangs": [str(gang) for gang in each.gangs], "reason": each.reason}
        for each in plan.waiting
    ]
    return found


def _time(ctx: click.Context, at: str | None) -> datetime:
    return environment_of(ctx).clock.now() if at is None else parse_time(at)
