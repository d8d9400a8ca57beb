"""`plimsoll queues apply`: show what a file changes in a cluster, ask, and write it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import click

from plimsoll.adapters.kubernetes import KubernetesCluster
from plimsoll.adapters.kubernetes.calls import Call
from plimsoll.adapters.workers import SerialWorkers
from plimsoll.domain.errors import BadInput, Conflict, NotFound, Refused
from plimsoll.domain.kubernetes import NAMESPACE
from plimsoll_batch.adapters.documents import validated
from plimsoll_batch.adapters.kubernetes.calls import GET_CONFIGURATION
from plimsoll_batch.adapters.kubernetes.cluster import KubernetesQueues
from plimsoll_batch.adapters.queues_file import QueuesFile
from plimsoll_batch.domain.names import CONFIGURATION, CONFIGURATION_KEY
from plimsoll_batch.services.queue_observation import seen_in
from plimsoll_cli.batch.queue_changes import changes
from plimsoll_cli.batch.read_queues import QueuesRead, read_queues
from plimsoll_cli.environment import Environment, warn
from plimsoll_cli.kubeconfig_options import kubeconfig_options
from plimsoll_cli.options import environment_of
from plimsoll_cli.terminal import ask, first_of, say

MOST_NAMED: Final = 5
"""Gangs of a queue in one message."""
_OBJECT: Final = f"ConfigMap {NAMESPACE}/{CONFIGURATION}"

file_option: Final = click.option(
    "-f",
    "--file",
    required=True,
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="Read the configuration of the queues, in YAML or JSON.",
)


@click.command()
@file_option
@click.option("--yes", is_flag=True, help="Skip the confirmation.")
@kubeconfig_options
@click.pass_context
def apply(
    ctx: click.Context, file: Path, yes: bool, context: str | None, kubeconfig: Path | None
) -> None:
    """Show what a configuration changes in a cluster, ask, and write it to its ConfigMap.

    The command refuses to remove a queue in which gangs run: they would run on uncounted.
    """
    read = read_queues(file)
    for note in read.notes:
        warn(note)
    environment = environment_of(ctx)
    _, api = environment.by_kubeconfig(kubeconfig, context)
    there = _there(api)
    before = _before(there)
    if there is not None and before == read.file:
        say(f"{_OBJECT} says the same already")
        return
    for line in changes(before or QueuesFile(), read.file):
        say(line)
    _refuse_to_orphan(environment, api, before, read)
    if not yes:
        ask(f"Write this to {_OBJECT}?")
    _write(api, read, there)
    say(f"{_OBJECT} {'created' if there is None else 'replaced'}")


def _there(api: KubernetesCluster) -> Mapping[str, Any] | None:
    try:
        return api.requests.send(GET_CONFIGURATION, namespace=NAMESPACE, name=CONFIGURATION)
    except NotFound:
        return None


def _before(there: Mapping[str, Any] | None) -> QueuesFile | None:
    """Return what the cluster has; None where it has nothing, or nothing that can be read."""
    if there is None:
        return None
    try:
        return validated(QueuesFile, json.loads((there.get("data") or {})[CONFIGURATION_KEY]))
    except (BadInput, KeyError, TypeError, ValueError, RecursionError) as error:
        warn(f"{_OBJECT} cannot be read, and is replaced as a whole: {error}")
        return None


def _refuse_to_orphan(
    environment: Environment, api: KubernetesCluster, before: QueuesFile | None, read: QueuesRead
) -> None:
    """Refuse to remove queues in which gangs run.

    Raises:
        BadInput: gangs run in them; says how to remove them all the same.
    """
    stay = {queue.name for queue in read.file.queues}
    go = {queue.name for queue in ([] if before is None else before.queues)} - stay
    if not go:
        return
    clock = environment.clock
    cluster = KubernetesQueues(api.requests, clock, workers=SerialWorkers(), warn=warn)
    seen = seen_in(cluster.read(), read.configuration, clock.now())
    problems = []
    for queue in sorted(go):
        run = sorted(str(r.gang) for r in seen.state.running if r.gang.queue == queue)
        wait = sorted(str(gang) for gang in seen.state.gangs if gang.queue == queue)
        if run:
            problems.append(
                f"queue {queue}: cannot go while gangs run in it ({first_of(run, MOST_NAMED)}): set stopped: true,"
                " let them end or end them with `plimsoll jobs cancel`, and remove it then"
            )
        elif wait:
            warn(f"queue {queue}: goes, and {first_of(wait, MOST_NAMED)} will wait in no queue")
    if problems:
        raise BadInput("\n".join(problems))


def _write(api: KubernetesCluster, read: QueuesRead, there: Mapping[str, Any] | None) -> None:
    """Write a configuration in place of the one that was shown.

    Raises:
        Refused: somebody else wrote one meanwhile.
    """
    metadata: dict[str, Any] = {"name": CONFIGURATION, "namespace": NAMESPACE}
    if there is not None:
        metadata["resourceVersion"] = there["metadata"]["resourceVersion"]
    manifest = {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": metadata,
        "data": {CONFIGURATION_KEY: json.dumps(read.document, indent=1, default=str)},
    }
    verb = "create" if there is None else "update"
    call = Call(verb=verb, resource="configmaps", only_in=NAMESPACE)
    try:
        api.requests.send(call, namespace=NAMESPACE, name=CONFIGURATION, body=manifest)
    except Conflict as error:
        raise Refused(f"{_OBJECT}: somebody else changed it meanwhile: try again") from error
