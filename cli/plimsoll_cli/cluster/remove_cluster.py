"""`plimsoll clusters remove`: print the changes, ask, and revert Plimsoll's own."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Final
from uuid import uuid4

import click

from plimsoll.adapters.kubernetes.calls import OVERLAYS
from plimsoll.adapters.workers import SerialWorkers
from plimsoll.domain.actions import Plan
from plimsoll.domain.errors import BadInput, NotFound, PlimsollError
from plimsoll.domain.kubernetes import FLOORS
from plimsoll.domain.registry import Cluster, ClusterKind
from plimsoll_cli.cluster.cluster_setup import OTHER_ACCOUNT, ClusterSetup, listed
from plimsoll_cli.cluster.open_interruptions import status_of
from plimsoll_cli.cluster.uninstall_plan import UninstallPlan
from plimsoll_cli.cluster.uninstall_service import UninstallService
from plimsoll_cli.environment import Administered, Deployed, Environment, Said, warn
from plimsoll_cli.kubeconfig_options import kubeconfig_option
from plimsoll_cli.options import environment_of, registered, stack_option
from plimsoll_cli.setup.identity import unproven
from plimsoll_cli.setup.plan import kept, plan_remove
from plimsoll_cli.stack import Stack
from plimsoll_cli.terminal import ask, say

PATIENCE_SECONDS: Final = 60.0
"""How long it goes on while replacements are still starting."""
_SOME_CONTEXT: Final = ("--context", "CONTEXT")
"""What stands in a command where no context was named."""


@click.command()
@click.argument("name")
@click.option("--dry-run", is_flag=True, help="Print the changes, and write nothing.")
@click.option("--yes", is_flag=True, help="Skip the confirmation.")
@click.option(
    "--force",
    is_flag=True,
    help="Remove only the registration, whatever is open: for a cluster that no longer exists.",
)
@click.option(
    "--context",
    metavar="NAME",
    help="Also delete the manifests, access entries and tags, with your rights, in the cluster of this context.",
)
@kubeconfig_option(
    "With --context: use this kubeconfig. [default: $KUBECONFIG, else ~/.kube/config]"
)
@stack_option
@click.pass_context
def remove(  # noqa: PLR0913, PLR0917 - the options of the command
    ctx: click.Context,
    name: str,
    dry_run: bool,
    yes: bool,
    force: bool,
    context: str | None,
    kubeconfig: Path | None,
    stack: str,
) -> None:
    """Revert Plimsoll's changes in a cluster, then remove the cluster.

    Plimsoll uncordons nodes that stay, deletes their taint and record, and undoes releases of pods. While
    an instance is about to stop, the cluster stays registered: run the command again afterwards.

    The command writes with your own rights in an EKS cluster, and with the functions' token in another,
    even while the kill switch is on.

    With --context it is the inverse of `plimsoll clusters add --context`, and can be repeated after a failure.
    """
    if dry_run and force:
        raise click.UsageError("give either --force, which reverts nothing, or --dry-run")
    if context is None and kubeconfig is not None:
        raise click.UsageError("--kubeconfig needs --context")
    if context is not None and force:
        raise click.UsageError("give either --force, for a cluster that is gone, or --context")
    environment = environment_of(ctx)
    deployed = environment.deployed(stack)
    if context is not None:
        administered = environment.administered(kubeconfig, context)
        if not _take_down(environment, deployed, administered, name, dry_run=dry_run, yes=yes):
            ctx.exit(1)
        return
    cluster = registered(deployed, name)
    if force:
        _name_what_is_left(deployed, cluster)
    elif not _put_back(environment, deployed, cluster, dry_run=dry_run, yes=yes):
        ctx.exit(1)
    else:
        _unbind_injection(deployed, cluster, dry_run=dry_run)
    if dry_run:
        say(f"Nothing was written, and {name} is still registered.")
        return
    # Last: the command can be repeated while the cluster is registered.
    deployed.registry.remove(name)
    say(f"{name} is removed.")


def _take_down(  # noqa: PLR0913 - the options
    environment: Environment,
    deployed: Deployed,
    administered: Administered,
    name: str,
    *,
    dry_run: bool,
    yes: bool,
) -> bool:
    """Revert, then remove everything that adding the cluster made; return whether nothing is left."""
    there = deployed.registry.get(name)
    cluster = there or Cluster(
        name=name,
        kind=ClusterKind.EKS,
        region=deployed.stack.region,
        added=environment.clock.now(),
    )
    if cluster.role is not None:
        raise click.UsageError(OTHER_ACCOUNT)
    setup = ClusterSetup(deployed=deployed, administered=administered, cluster=cluster)
    eks = cluster.kind is ClusterKind.EKS and (
        there is not None or deployed.access.find(cluster) is not None
    )
    if eks:
        setup.check_identity()
    objects = administered.objects
    seen = replace(
        setup.seen([None, *OVERLAYS], objects.exists, grown=None, eks=eks), others=objects.others()
    )
    place = setup.place()
    steps = plan_remove(place, seen)
    say(setup.title())
    if there is not None:
        # Before the steps: they take away rights that an open drain still needs.
        if not _put_back(environment, deployed, cluster, dry_run=dry_run, yes=yes):
            return False
        _unbind_injection(deployed, cluster, place.options, dry_run=dry_run)
    for line in (*listed(steps), *kept(place, seen), *filter(None, [_doubt(setup, eks=eks)])):
        say(line)
    if dry_run:
        say("Nothing was written.")
        return True
    return setup.carried_out(steps, yes=yes)


def _doubt(setup: ClusterSetup, *, eks: bool) -> str | None:
    """Say what nothing proves about a cluster whose objects are about to be deleted."""
    server, name = setup.administered.server, setup.cluster.name
    if eks:
        return None
    if setup.cluster.kind is ClusterKind.EKS:
        return f"Not proven: {name} is not registered, and EKS knows none of that name. Everything is deleted at {server}."
    return unproven(setup.cluster, server)


def _put_back(
    environment: Environment, deployed: Deployed, cluster: Cluster, *, dry_run: bool, yes: bool
) -> bool:
    """Revert our changes in a cluster, and return whether none is left; a dry run returns whether none is there now.

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
            f"cannot read whether an interruption is open in {cluster.name} ({error}): fix that, "
            "or remove the cluster with --force"
        ) from error
    would = "would " if dry_run else ""
    for words in map(str, found.plan.steps):
        say(f"{would}{words}")
    if dry_run:
        return _is_clean(deployed.stack, cluster, replace(found, plan=Plan()))
    if found.interrupted or not found.plan.steps:
        return _is_clean(deployed.stack, cluster, found)
    if not yes:
        ask(f"Set {cluster.name} to observe, and make these changes?")
    departure = service.put_back(cluster, f"remove-{uuid4()}", PATIENCE_SECONDS)
    count = sum(outcome.done for outcome in departure.outcomes)
    say(f"{count} {'change' if count == 1 else 'changes'} made.")
    return _is_clean(deployed.stack, cluster, departure.left)


def _unbind_injection(
    deployed: Deployed, cluster: Cluster, options: Sequence[str] = _SOME_CONTEXT, *, dry_run: bool
) -> None:
    """Unbind the admission policy, which placement would no longer keep up to date.

    Args:
        deployed: the stack.
        cluster: the cluster.
        options: how a command reaches it by a kubeconfig.
        dry_run: write nothing.
    """
    api = deployed.clusters.open(cluster)
    if not api.injected_floors():
        return
    if not dry_run:
        try:
            api.remove_injection()
        except NotFound:
            return
    unbound = "would unbind" if dry_run else "unbound"
    rest = shlex.join(["plimsoll", "install-policy", *options, "--remove"])
    say(f"{unbound} the admission policy {FLOORS}; `{rest}` deletes the rest")


def _name_what_is_left(deployed: Deployed, cluster: Cluster) -> None:
    """Warn of changes that stay in a cluster removed by force."""
    try:
        still = status_of(deployed.clusters.open(cluster).observe())
    except PlimsollError as error:
        warn(f"cannot read whether an interruption is open in {cluster.name}: {error}")
        return
    for one in still.interruptions:
        warn(f"left: {one.kind} on node {one.node} (pods left: {len(one.pods_left)})")
    for pod in still.released_pods:
        warn(f"left: {pod} is released from its ReplicaSet")


def _is_clean(stack: Stack, cluster: Cluster, left: UninstallPlan) -> bool:
    if left.clean:
        return True
    for words in (*left.interrupted, *map(str, left.plan.steps), *left.by_hand):
        say(f"open: {words}", err=True)
    say(
        f"{cluster.name} stays registered until nothing is open in it. Run the command again "
        f"once `{stack.command('status', '--cluster', cluster.name)}` shows less, or remove it with --force.",
        err=True,
    )
    return False
