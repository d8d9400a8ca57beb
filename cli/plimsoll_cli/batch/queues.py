"""`plimsoll queues`: list, check, apply, plan and run queues."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path
from typing import Final, override
from uuid import uuid4

import click
import yaml

from plimsoll.adapters.workers import ThreadWorkers
from plimsoll_batch.adapters.kubernetes.cluster import KubernetesQueues
from plimsoll_batch.services.queues import QueueService
from plimsoll_cli.batch.apply import apply, file_option
from plimsoll_cli.batch.framework_manifests import manifests
from plimsoll_cli.batch.history import history
from plimsoll_cli.batch.list_queues import list_command
from plimsoll_cli.batch.queue_plans import plan, why_command
from plimsoll_cli.batch.read_queues import read_queues
from plimsoll_cli.environment import Said, warn
from plimsoll_cli.kubeconfig_options import kubeconfig_options
from plimsoll_cli.options import environment_of
from plimsoll_cli.terminal import say

EXAMPLES: Final = """\b
Examples:
  plimsoll queues check -f queues.yaml
  plimsoll queues apply -f queues.yaml --context harbor
  plimsoll queues list --context harbor
  plimsoll queues history --cluster harbor --queue research
  plimsoll queues manifests --frameworks jobset,ray | kubectl apply -f -
  plimsoll queues plan -f changed.yaml --context harbor
  plimsoll queues why lab/train -f changed.yaml --context harbor
  plimsoll queues plan -f queues.yaml --snapshot snapshot.yaml

\b
Exit status:
  0  the command succeeded
  1  there is no such waiting gang
  2  a file is invalid, and the message names every problem and its place; or the cluster refuses
"""

RUN_SECONDS: Final = 60.0
PAUSE_SECONDS: Final = 1.0


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
queues.add_command(history)
queues.add_command(list_command)
queues.add_command(manifests)
queues.add_command(plan)
queues.add_command(why_command)


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
