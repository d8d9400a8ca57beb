"""Gangs of a cluster's queues: `plimsoll jobs`, `why`, `suspend`, `resume` and `cancel`.

They read and write with the rights of a kubeconfig. What runs and what waits is decided by the planner
alone: these commands say what their user wants, and the planner does it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import click

from plimsoll.adapters.kubernetes.calls import DELETE_POD, PATCH_POD, Call
from plimsoll.adapters.kubernetes.requests import Requests
from plimsoll.adapters.workers import SerialWorkers
from plimsoll.domain.errors import BadInput, MissingRights, NotFound
from plimsoll.domain.kubernetes import LONGEST_MESSAGE
from plimsoll_batch.adapters.kubernetes.calls import PATCH_JOB
from plimsoll_batch.adapters.kubernetes.cluster import KubernetesQueues
from plimsoll_batch.domain import names
from plimsoll_batch.domain.assembly import GangJobs, Shapes
from plimsoll_batch.domain.events import NOT_LEASED
from plimsoll_batch.domain.jobs import Job
from plimsoll_batch.domain.why import in_words, why
from plimsoll_batch.services.state import Seen, seen_in
from plimsoll_cli.environment import Environment, environment_of, warn
from plimsoll_cli.options import (
    clock_text,
    console,
    json_option,
    kubeconfig_options,
    print_json,
    table,
)

_LIST_EVENTS: Final = Call(verb="list", resource="events")
_DELETE: Final = Call(verb="delete", group="batch", resource="jobs")
EXAMPLES: Final = """\b
Examples:
  plimsoll jobs --context harbor
  plimsoll why lab/train
  plimsoll suspend lab/train
  plimsoll resume lab/train
  plimsoll cancel lab/train

\b
Exit status:
  0  done; the answer was printed
  1  there is no such gang
  2  something given is wrong, a right is missing, or the cluster cannot be reached
"""


_GANG: Final = click.argument("gang", metavar="NAMESPACE/NAME")


@dataclass(frozen=True, slots=True, kw_only=True)
class _Queues:
    """The queues of a cluster at this moment."""

    cluster: KubernetesQueues
    seen: Seen

    @classmethod
    def of(cls, environment: Environment, file: Path | None, context: str | None) -> _Queues:
        _, api = environment.by_kubeconfig(file, context)
        clock = environment.clock
        cluster = KubernetesQueues(api.requests, clock, workers=SerialWorkers(), warn=warn)
        forest = cluster.configuration()
        if forest is None:
            raise BadInput(
                "the cluster has no queues: configure them with `plimsoll queues apply -f FILE`"
            )
        seen = seen_in(cluster.read(), forest, clock.now(), Shapes())
        return cls(cluster=cluster, seen=seen)

    def gang(self, name: str) -> GangJobs:
        """Return a gang by namespace and name.

        Raises:
            NotFound: there is none, or all of it has finished.
        """
        for jobs in self.seen.gangs.values():
            if str(jobs.gang) == name:
                return jobs
        raise NotFound(f"no gang {name} waits or runs: see `plimsoll jobs`")


@click.command(short_help="List the gangs that wait and run.", epilog=EXAMPLES)
@kubeconfig_options
@json_option
@click.pass_context
def jobs(ctx: click.Context, context: str | None, kubeconfig: Path | None, as_json: bool) -> None:
    """List the gangs of a cluster's queues, those that run first."""
    found = _Queues.of(environment_of(ctx), kubeconfig, context)
    rows = sorted((_row(each) for each in found.seen.gangs.values()), key=_order)
    if as_json:
        print_json(rows)
        return
    shown = table("GANG", "QUEUE", "STATE", "PODS", "SINCE", "")
    for row in rows:
        pods = f"{row['running']}/{row['pods']}"
        since = clock_text(row["since"]) or ""
        shown.add_row(row["gang"], row["queue"], row["state"], pods, since, row["because"])
    console().print(shown)


@click.command(name="why", short_help="Say why a gang waits.", epilog=EXAMPLES)
@_GANG
@kubeconfig_options
@click.pass_context
def why_command(
    ctx: click.Context, gang: str, context: str | None, kubeconfig: Path | None
) -> None:
    """Say what holds a gang, what would have to end first, and when that is expected."""
    environment = environment_of(ctx)
    found = _Queues.of(environment, kubeconfig, context)
    asked = _asked(ctx, found, gang)
    told = why(found.seen.state, asked.gang.uid, environment.clock.now())
    if told is None:
        click.echo(f"{gang}: {_state(asked)}")
        return
    click.echo(in_words(told))
    if not told.held and asked.gang.shape.leases and (refused := _not_leased(found, asked)):
        click.echo(f"  {refused}")


@click.command(short_help="Suspend a gang, and hold it.", epilog=EXAMPLES)
@_GANG
@kubeconfig_options
@click.pass_context
def suspend(ctx: click.Context, gang: str, context: str | None, kubeconfig: Path | None) -> None:
    """Suspend all Jobs of a gang at once. It waits until `plimsoll resume`."""
    found = _Queues.of(environment_of(ctx), kubeconfig, context)
    roles = _asked(ctx, found, gang).roles
    if any(role.bare and not role.suspended for role in roles):
        raise BadInput(
            f"{gang} runs as bare pods, which cannot be suspended: `plimsoll cancel {gang}` deletes them"
        )
    for role in roles:
        _patch(found, role, {names.HOLD: "true"}, {} if role.bare else {"spec": {"suspend": True}})
    click.echo(f"{gang} is suspended, and held")


@click.command(short_help="Let a gang start again.", epilog=EXAMPLES)
@_GANG
@kubeconfig_options
@click.pass_context
def resume(ctx: click.Context, gang: str, context: str | None, kubeconfig: Path | None) -> None:
    """Let a gang wait in its queue again that was suspended, by this command line or by hand."""
    found = _Queues.of(environment_of(ctx), kubeconfig, context)
    for role in _asked(ctx, found, gang).roles:
        plan = None if role.admission is None else role.admission.plan
        _patch(found, role, {names.HOLD: None, names.RESUME: plan}, {})
    click.echo(f"{gang} waits in its queue")


@click.command(short_help="Delete a gang.", epilog=EXAMPLES)
@_GANG
@kubeconfig_options
@click.pass_context
def cancel(ctx: click.Context, gang: str, context: str | None, kubeconfig: Path | None) -> None:
    """Delete all Jobs of a gang that have not finished, and their pods."""
    found = _Queues.of(environment_of(ctx), kubeconfig, context)
    for role in _asked(ctx, found, gang).roles:
        call = DELETE_POD if role.bare else _DELETE
        delete(found.cluster.requests, role.ref.namespace, role.ref.name, uid=role.uid, call=call)
    click.echo(f"{gang} is deleted")


def _not_leased(found: _Queues, jobs: GangJobs) -> str | None:
    """Say why the planner could not lease nodes to a gang, as it told by an Event; None where it told nothing."""
    about = f"involvedObject.uid={jobs.roles[0].uid},reason={NOT_LEASED}"
    try:
        events = found.cluster.requests.list(_LIST_EVENTS, fields=about)
    except MissingRights as error:
        return f"whether nodes could be leased to it is not known: {error}"
    if not events:
        return None
    newest = max(events, key=lambda event: str(event.get("lastTimestamp") or ""))
    said = f"{newest.get('lastTimestamp')}: {newest.get('message')}"
    return "".join(c for c in said if c.isprintable())[: 2 * LONGEST_MESSAGE]


def _asked(ctx: click.Context, found: _Queues, name: str) -> GangJobs:
    try:
        return found.gang(name if "/" in name else f"default/{name}")
    except NotFound as error:
        click.echo(str(error), err=True)
        ctx.exit(1)


def _row(jobs: GangJobs) -> dict[str, Any]:
    gang = jobs.gang
    return {
        "gang": str(gang),
        "queue": gang.queue,
        "state": _state(jobs),
        "running": sum(pod.phase == "Running" for pod in jobs.pods),
        "pods": sum(role.pods for role in jobs.roles),
        "since": gang.since,
        "because": "; ".join(jobs.problems or gang.gates),
    }


def _state(jobs: GangJobs) -> str:
    if jobs.stopping:
        return "stopping"
    if jobs.plan is not None:
        return "starting" if jobs.starting else "running"
    return "started by hand" if jobs.started else "waiting"


def _order(row: Mapping[str, Any]) -> tuple[object, ...]:
    return row["state"] == "waiting", row["queue"], row["since"], row["gang"]


def _patch(
    found: _Queues, role: Job, annotations: Mapping[str, str | None], more: Mapping[str, Any]
) -> None:
    """Change a Job or bare pod under its uid: one of the same name that came later is another's."""
    body = {"metadata": {"uid": role.uid, "annotations": annotations}, **more}
    found.cluster.requests.send(
        PATCH_POD if role.bare else PATCH_JOB,
        namespace=role.ref.namespace,
        name=role.ref.name,
        body=body,
    )


def delete(
    requests: Requests, namespace: str, name: str, *, uid: str | None = None, call: Call = _DELETE
) -> None:
    """Delete a Job and its pods, or what another call deletes."""
    options = {"apiVersion": "v1", "kind": "DeleteOptions", "propagationPolicy": "Background"}
    body = options | ({"preconditions": {"uid": uid}} if uid is not None else {})
    requests.send(call, namespace=namespace, name=name, body=body)
