"""Adding a cluster by its kubeconfig: the steps are shown, asked about once, and done."""

from __future__ import annotations

from collections.abc import Sequence

import click

from plimsoll.domain.errors import BadInput
from plimsoll.domain.registry import Cluster, ClusterKind
from plimsoll_cli.cluster.cluster_setup import OTHER_ACCOUNT, ClusterSetup, listed
from plimsoll_cli.environment import Administered, Deployed
from plimsoll_cli.setup.identity import is_registered, taken, unproven
from plimsoll_cli.setup.plan import plan_add
from plimsoll_cli.setup.script import script_of
from plimsoll_cli.terminal import say


def registered_as(cluster: Cluster, deployed: Deployed, administered: Administered) -> Cluster:
    """Return the registered cluster of a name that no option describes, or the given one where there is none.

    Raises:
        BadInput: it is not known to be the cluster of the context.
        UsageError: it is in another account.
    """
    there = deployed.registry.get(cluster.name)
    if there is None:
        return cluster
    if there.role is not None:
        raise click.UsageError(OTHER_ACCOUNT)
    doubt = unproven(there, administered.server)
    if doubt is not None:
        raise BadInput(
            f"{doubt} Choose another context, or give --endpoint, --ca and --secret again"
        )
    return there


def add_by_context(  # noqa: PLR0913 - the options
    setup: ClusterSetup,
    overlays: Sequence[str],
    grown: Sequence[str],
    *,
    dry_run: bool,
    printed: bool,
    yes: bool,
) -> bool:
    """Show the steps, ask, and do them; return whether all are done.

    Args:
        setup: the cluster.
        overlays: those beside the base.
        grown: the names of the node groups that Plimsoll shall grow.
        dry_run: show the steps, and write nothing.
        printed: print a script instead, and write nothing.
        yes: do not ask.

    Raises:
        BadInput: the name is taken, or context and cluster do not belong together.
    """
    cluster, stack = setup.cluster, setup.deployed.stack
    there = setup.deployed.registry.get(cluster.name)
    if there is not None and not is_registered(there, cluster):
        raise taken(cluster, stack)
    eks = cluster.kind is ClusterKind.EKS
    if eks:
        setup.check_identity()
    objects = setup.administered.objects
    seen = setup.seen([None, *overlays], objects.holds, grown=grown, eks=eks)
    steps = plan_add(setup.place(), seen)
    if printed:
        say(script_of(setup.title(), steps), nl=False)
        return False
    say(setup.title())
    for line in listed(steps):
        say(line)
    if seen.untagged:
        say(
            f"Plimsoll may not grow these node groups: {', '.join(seen.untagged)} (--grow NAME allows it)"
        )
    doubt = unproven(cluster, setup.administered.server)
    if doubt is not None:
        say(doubt)
    if dry_run:
        say("Nothing was written. --print gives these steps as a script that needs no checkout.")
        return False
    return setup.carried_out(steps, yes=yes)
