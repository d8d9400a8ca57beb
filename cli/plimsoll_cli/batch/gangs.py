"""`plimsoll jobs` on the gangs of a cluster: list, why, suspend, resume and cancel.

They read and write with the rights of a kubeconfig. The planner alone decides which gangs run: these
commands write the user's wish, and the planner acts on it.
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
from plimsoll.domain.kubernetes import LONGEST_MESSAGE_CHARACTERS
from plimsoll_batch.adapters.kubernetes.calls import call_of
from plimsoll_batch.adapters.kubernetes.cluster import KubernetesQueues
from plimsoll_batch.domain import names
from plimsoll_batch.domain.explanation import Explanation, in_words, why
from plimsoll_batch.domain.jobs import GangJobs, Job
from plimsoll_batch.domain.names import NOT_LEASED
from plimsoll_batch.domain.quota import QueueConfiguration
from plimsoll_batch.services.queue_observation import Seen, seen_in
from plimsoll_cli.environment import Environment, warn
from plimsoll_cli.kubeconfig_options import kubeconfig_options
from plimsoll_cli.options import (
    Output,
    clock_text,
    console,
    environment_of,
    output_option,
    print_answer,
    table,
)
from plimsoll_cli.terminal import say

_LIST_EVENTS: Final = Call(verb="list", resource="events")
_DELETE: Final = Call(verb="delete", group="batch", resource="jobs")
_GANG: Final = click.argument("gang", metavar="NAMESPACE/NAME")


@dataclass(frozen=True, slots=True, kw_only=True)
class Queues:
    """The queues of a cluster at this moment."""

    cluster: KubernetesQueues
    seen: Seen

    @classmethod
    def of(
        cls,
        environment: Environment,
        file: Path | None,
        context: str | None,
        instead: QueueConfiguration | None = None,
    ) -> Queues:
        """Read the cluster of a kubeconfig.

        Args:
            environment: of the command.
            file: the kubeconfig.
            context: in it.
            instead: what the cluster is seen by in the place of its own configuration.

        Raises:
            BadInput: it has no queues.
        """
        _, api = environment.by_kubeconfig(file, context)
        clock = environment.clock
        cluster = KubernetesQueues(api.requests, clock, workers=SerialWorkers(), warn=warn)
        if instead is not None:
            cluster.assume(instead)
        configuration = instead or cluster.configuration()
        if configuration is None:
            raise BadInput(
                "the cluster has no queues: configure them with `plimsoll queues apply -f FILE`"
            )
        seen = seen_in(cluster.read(), configuration, clock.now())
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


def list_gangs(
    environment: Environment, kubeconfig: Path | None, context: str | None, output: Output
) -> None:
    """Print the waiting and running gangs, the running ones first."""
    found = Queues.of(environment, kubeconfig, context)
    rows = sorted((_row(each) for each in found.seen.gangs.values()), key=_order)
    if output != "table":
        print_answer(rows, output)
        return
    shown = table("GANG", "QUEUE", "STATE", "PODS", "SINCE", "")
    for row in rows:
        pods = f"{row['running']}/{row['pods']}"
        since = clock_text(row["since"]) or ""
        shown.add_row(row["gang"], row["queue"], row["state"], pods, since, row["because"])
    console().print(shown)


@click.command(name="why")
@_GANG
@kubeconfig_options
@output_option
@click.pass_context
def why_command(
    ctx: click.Context, gang: str, context: str | None, kubeconfig: Path | None, output: Output
) -> None:
    """Explain why a gang waits, which gangs must end first, and when."""
    environment = environment_of(ctx)
    found = Queues.of(environment, kubeconfig, context)
    asked = _asked(ctx, found, gang)
    told = why(found.seen.state, asked.gang.uid, environment.clock.now())
    unsure = told is not None and not told.held and asked.gang.shape.leases
    refused = _not_leased(found, asked) if unsure else None
    past = asked.gang.preempted
    if output != "table":
        about = {
            "gang": str(asked.gang),
            "state": gang_state(asked),
            "not_leased": refused,
            "preempted": None
            if past is None
            else {"at": past.at, "by": past.by or None, "reason": past.why},
        }
        print_answer(about | ({} if told is None else explained(told)), output)
        return
    say(f"{gang}: {gang_state(asked)}" if told is None else in_words(told))
    if told is None and past is not None:
        say(f"  it was {past.in_words()}")
    if refused:
        say(f"  {refused}")


def explained(found: Explanation) -> dict[str, Any]:
    """Return an explanation as data."""
    return {
        "gang": str(found.gang),
        "queue": found.gang.queue,
        "ahead": found.ahead,
        "held": found.held,
        "flavors": found.flavors,
        "after": [str(gang) for gang in found.after],
        "expected": found.at,
        "costs": found.costs,
        "notes": found.notes,
    }


@click.command()
@_GANG
@kubeconfig_options
@click.pass_context
def suspend(ctx: click.Context, gang: str, context: str | None, kubeconfig: Path | None) -> None:
    """Suspend all Jobs of a gang at once, until `plimsoll jobs resume`."""
    found = Queues.of(environment_of(ctx), kubeconfig, context)
    roles = _asked(ctx, found, gang).roles
    if any(role.bare and not role.suspended for role in roles):
        raise BadInput(
            f"{gang} has bare pods, which cannot be suspended: `plimsoll jobs cancel {gang}` deletes them"
        )
    for role in roles:
        _patch(found, role, {names.HOLD: "true"}, {} if role.bare else _suspended(role))
    say(f"{gang} is suspended until `plimsoll jobs resume {gang}`")


@click.command()
@_GANG
@kubeconfig_options
@click.pass_context
def resume(ctx: click.Context, gang: str, context: str | None, kubeconfig: Path | None) -> None:
    """Return a gang to its queue after `plimsoll jobs suspend`, or after you suspended its Jobs by hand."""
    found = Queues.of(environment_of(ctx), kubeconfig, context)
    for role in _asked(ctx, found, gang).roles:
        plan = None if role.admission is None else role.admission.plan
        _patch(found, role, {names.HOLD: None, names.RESUME: plan}, {})
    say(f"{gang} waits in its queue")


@click.command()
@_GANG
@kubeconfig_options
@click.pass_context
def cancel(ctx: click.Context, gang: str, context: str | None, kubeconfig: Path | None) -> None:
    """Delete the unfinished Jobs of a gang, and their pods."""
    found = Queues.of(environment_of(ctx), kubeconfig, context)
    for role in _asked(ctx, found, gang).roles:
        call = DELETE_POD if role.bare else call_of(role.framework, "delete")
        delete(found.cluster.requests, role.ref.namespace, role.ref.name, uid=role.uid, call=call)
    say(f"{gang} is deleted")


def _not_leased(found: Queues, jobs: GangJobs) -> str | None:
    """Return why the planner could not lease nodes to a gang, from its newest Event; None without one."""
    about = f"involvedObject.uid={jobs.roles[0].uid},reason={NOT_LEASED}"
    try:
        events = found.cluster.requests.list(_LIST_EVENTS, fields=about)
    except MissingRights as error:
        return f"cannot read whether the planner could lease nodes to the gang: {error}"
    if not events:
        return None
    newest = max(events, key=lambda event: str(event.get("lastTimestamp") or ""))
    said = f"{newest.get('lastTimestamp')}: {newest.get('message')}"
    return "".join(c for c in said if c.isprintable())[: 2 * LONGEST_MESSAGE_CHARACTERS]


def _asked(ctx: click.Context, found: Queues, name: str) -> GangJobs:
    try:
        return found.gang(name if "/" in name else f"default/{name}")
    except NotFound as error:
        say(str(error), err=True)
        ctx.exit(1)


def _row(jobs: GangJobs) -> dict[str, Any]:
    gang = jobs.gang
    return {
        "gang": str(gang),
        "queue": gang.queue,
        "state": gang_state(jobs),
        "running": sum(pod.phase == "Running" for pod in jobs.pods),
        "pods": sum(role.pods for role in jobs.roles),
        "since": gang.since,
        "because": "; ".join(jobs.problems or gang.gates),
    }


def gang_state(jobs: GangJobs) -> str:
    """Return what a gang is doing, in a word or three."""
    if jobs.stopping:
        return "stopping"
    if jobs.plan is not None:
        return "starting" if jobs.starting else "running"
    return "started by hand" if jobs.started else "waiting"


def _order(row: Mapping[str, Any]) -> tuple[object, ...]:
    return row["state"] == "waiting", row["queue"], row["since"], row["gang"]


def _patch(
    found: Queues, role: Job, annotations: Mapping[str, str | None], more: Mapping[str, Any]
) -> None:
    """Change a Job or bare pod under its uid: one of the same name that came later is another's."""
    body = {"metadata": {"uid": role.uid, "annotations": annotations}, **more}
    found.cluster.requests.send(
        PATCH_POD if role.bare else call_of(role.framework, "patch"),
        namespace=role.ref.namespace,
        name=role.ref.name,
        body=body,
    )


def _suspended(role: Job) -> Mapping[str, Any]:
    said: Any = True
    for name in reversed(role.framework.suspend):
        said = {name: said}
    found: Mapping[str, Any] = said
    return found


def delete(
    requests: Requests, namespace: str, name: str, *, uid: str | None = None, call: Call = _DELETE
) -> None:
    """Delete a Job and its pods, or what another call deletes."""
    options = {"apiVersion": "v1", "kind": "DeleteOptions", "propagationPolicy": "Background"}
    body = options | ({"preconditions": {"uid": uid}} if uid is not None else {})
    requests.send(call, namespace=namespace, name=name, body=body)
