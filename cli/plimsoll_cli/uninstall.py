"""How `plimsoll clusters remove` leaves a cluster: what it says, asks and puts back."""

from __future__ import annotations

from dataclasses import replace
from typing import Final
from uuid import uuid4

import click

from plimsoll.adapters.workers import SerialWorkers
from plimsoll.domain.actions import Plan
from plimsoll.domain.errors import BadInput, NotFound, PlimsollError
from plimsoll.domain.kubernetes import FLOORS
from plimsoll.domain.registry import Cluster
from plimsoll_cli.cluster_status import status_of
from plimsoll_cli.environment import Deployed, Environment, Said, warn
from plimsoll_cli.uninstall_plan import UninstallPlan
from plimsoll_cli.uninstall_service import UninstallService

PATIENCE_SECONDS: Final = 60.0
"""How long it goes on while replacements are still starting."""


def put_back(
    environment: Environment, deployed: Deployed, cluster: Cluster, *, dry_run: bool, yes: bool
) -> bool:
    """Leave a cluster clean, and say whether it is; a dry run says whether it would be.

    Raises:
        BadInput: the cluster cannot be read.
        PlimsollError: it cannot be written to.
    """
    service = UninstallService(
        registry=deployed.registry,
        clusters=deployed.clusters,
        groups=deployed.groups,
        clock=environment.clock,
        workers=SerialWorkers(),
        telemetry=Said(),
    )
    try:
        found = service.look(cluster)
    except PlimsollError as error:
        raise BadInput(
            f"whether something is open in {cluster.name} cannot be read ({error}): fix that, "
            "or remove it with --force"
        ) from error
    would = "would " if dry_run else ""
    for words in map(str, found.plan.steps):
        click.echo(f"{would}{words}")
    if dry_run:
        return _is_clean(cluster, replace(found, plan=Plan()))
    if found.interrupted or not found.plan.steps:
        return _is_clean(cluster, found)
    if not yes:
        click.confirm(f"Set {cluster.name} to observe, and put this back?", abort=True)
    departure = service.put_back(cluster, f"remove-{uuid4()}", PATIENCE_SECONDS)
    count = sum(outcome.done for outcome in departure.outcomes)
    click.echo(f"{count} {'change is' if count == 1 else 'changes are'} put back.")
    return _is_clean(cluster, departure.left)


def unbind_injection(deployed: Deployed, cluster: Cluster, *, dry_run: bool) -> None:
    """Take the admission policy out of force that nobody would tell or prove any more."""
    api = deployed.clusters.open(cluster)
    if not api.injected_floors():
        return
    if not dry_run:
        try:
            api.remove_injection()
        except NotFound:
            return
    unbound = "would unbind" if dry_run else "unbound"
    click.echo(
        f"{unbound} the admission policy {FLOORS}; `plimsoll install-policy --remove` takes the rest"
    )


def name_what_is_left(deployed: Deployed, cluster: Cluster) -> None:
    """Warn of what stays in a cluster that is removed by force."""
    try:
        still = status_of(deployed.clusters.open(cluster).observe())
    except PlimsollError as error:
        warn(f"whether something is open in {cluster.name} cannot be read: {error}")
        return
    for one in still.interruptions:
        warn(f"left: {one.kind} on node {one.node} (pods left: {len(one.pods_left)})")
    for pod in still.released_pods:
        warn(f"left: {pod} is released from its ReplicaSet")


def _is_clean(cluster: Cluster, left: UninstallPlan) -> bool:
    if left.clean:
        return True
    for words in (*left.interrupted, *map(str, left.plan.steps), *left.by_hand):
        click.echo(f"open: {words}", err=True)
    click.echo(
        f"{cluster.name} is kept, because nobody would end what is open. Run the command again "
        f"once `plimsoll status --cluster {cluster.name}` has moved on, or remove it with --force.",
        err=True,
    )
    return False
