"""`plimsoll clusters`: which clusters a deployed stack looks after, and whether it may write to them."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from datetime import datetime
from pathlib import Path
from typing import Final, Literal

import click

from plimsoll.adapters.clusters import check_endpoint
from plimsoll.domain.errors import BadInput, Conflict
from plimsoll.domain.interruptions import MaintenanceWindow, Response
from plimsoll.domain.kubernetes import NEVER_OVERRULED
from plimsoll.domain.notices import AGENT_ID
from plimsoll.domain.registry import Cluster, ClusterKind, Mode
from plimsoll_cli.clusters_wide import Wide
from plimsoll_cli.clusters_wide import wide as wide_of
from plimsoll_cli.environment import Deployed, environment_of, warn
from plimsoll_cli.neighbours import refuse_beside_drainers
from plimsoll_cli.options import (
    clock_text,
    console,
    json_option,
    print_json,
    registered,
    stack_option,
    table,
)
from plimsoll_cli.policy_options import FLOOR, HOURLY, KINDS, WINDOW, changed, listed
from plimsoll_cli.uninstall import name_what_is_left, put_back, unbind_injection

EXAMPLES: Final = """\b
Examples:
  plimsoll clusters add harbor
  plimsoll clusters add lab --endpoint https://10.0.0.1:6443 --ca ca.pem --secret plimsoll/lab
  plimsoll clusters add quay --role arn:aws:iam::210987654321:role/plimsoll-spoke-us-east-1 --external-id KEY
  plimsoll clusters list --json
  plimsoll clusters list --wide
  plimsoll clusters set harbor --mode act
  plimsoll clusters set harbor --min-on-demand 30%
  plimsoll clusters set harbor --on rebalance-recommendation=cordon --nodes-per-hour 2
  plimsoll clusters set harbor --maintenance-window "sat,sun 22:00-04:00"
  plimsoll clusters set harbor --agent a-d12436e2cf24b1d86001dfd9
  plimsoll clusters set quay --external-id KEY
  plimsoll clusters remove lab --dry-run
  plimsoll clusters remove lab

\b
Exit status:
  0  done
  1  the answer is no: it was not confirmed, or something is still open in the cluster
  2  something given is wrong, or the stack or the cluster cannot be reached
"""

_UNSAID: Final = frozenset({"ca", "external_id"})
"""Of a cluster in JSON: what is long, and what is nobody else's business."""
_ROLE: Final = re.compile(r"arn:aws[a-z-]*:iam::[0-9]{12}:role/[A-Za-z0-9+=,.@_/-]{1,128}")
ACTING: Final = """\
From now on Plimsoll writes to {name}:
  - interrupted nodes are cordoned, tainted and annotated;
  - pods of Deployments are released: one label, their owner and one annotation change, and their
    ReplicaSets create replacements; no workload is written;
  - pods are evicted; at its eviction deadline a pod is deleted even if a PodDisruptionBudget refuses;
  - node groups that are marked for it grow.
A workload with the label or annotation plimsoll.dev/ignore: "true" is left alone. It stops with
`plimsoll clusters set {name} --mode observe`, and for all clusters with the kill switch of the stack."""


@click.group(epilog=EXAMPLES, short_help="Say which clusters a stack looks after.")
def clusters() -> None:
    """Add, list, set and remove the clusters of a deployed stack.

    A cluster starts in the mode observe: everything is planned and reported, nothing is written.
    """


@clusters.command(epilog=EXAMPLES)
@click.argument("name")
@click.option("--eks", is_flag=True, help="An EKS cluster of this name (the default).")
@click.option("--endpoint", metavar="URL", help="Any other cluster: https://HOST:PORT of its API.")
@click.option(
    "--ca",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="With --endpoint: the CA certificate in PEM.",
)
@click.option(
    "--secret",
    metavar="ARN_OR_NAME",
    help="With --endpoint: the secret in Secrets Manager, named plimsoll/…, that holds the token.",
)
@click.option("--region", metavar="REGION", help="Where the cluster is; the stack's by default.")
@click.option(
    "--role",
    metavar="ARN",
    help="For a cluster in another account: the role there that infra/spoke.yaml made.",
)
@click.option(
    "--external-id", metavar="TEXT", help="With --role: the external id that the role asks for."
)
@stack_option
@click.pass_context
def add(  # noqa: PLR0913, PLR0917 - the options of the command
    ctx: click.Context,
    name: str,
    eks: bool,
    endpoint: str | None,
    ca: Path | None,
    secret: str | None,
    region: str | None,
    role: str | None,
    external_id: str | None,
    stack: str,
) -> None:
    """Register the cluster NAME, in the mode observe."""
    if eks and endpoint is not None:
        raise click.UsageError("--eks and --endpoint are two ways to one cluster: give one")
    if endpoint is None and (ca is not None or secret is not None):
        raise click.UsageError("--ca and --secret go with --endpoint; an EKS cluster needs neither")
    _check_role(role, external_id)
    certificate = None if ca is None else _certificate(ca)
    environment = environment_of(ctx)
    deployed = environment.deployed(stack)
    cluster = Cluster(
        name=name,
        kind=ClusterKind.EKS if endpoint is None else ClusterKind.ENDPOINT,
        region=region or deployed.region,
        endpoint=endpoint,
        ca=certificate,
        secret=secret,
        role=role,
        external_id=external_id,
        added=environment.clock.now(),
    )
    if endpoint is not None:
        check_endpoint(cluster)
    try:
        deployed.registry.add(cluster)
    except Conflict as error:
        raise BadInput(
            f"{error}: choose another name, or take that one away first "
            f"(plimsoll clusters remove {name})"
        ) from error
    click.echo(
        f"{name} is registered, and only observed. Grant the rights of infra/cluster to its "
        f"identity, watch the reports, then: plimsoll clusters set {name} --mode act"
    )


@clusters.command("list", epilog=EXAMPLES)
@click.option(
    "--wide",
    is_flag=True,
    help="Ask each cluster as well: its version, the rights held and missing in it, how old its node index is, and "
    "its last storm. For rights in an EKS cluster you must be an administrator of it.",
)
@json_option
@stack_option
@click.pass_context
def list_(
    ctx: click.Context,
    wide: bool,
    as_json: bool,
    stack: str,
) -> None:
    """List the registered clusters."""
    environment = environment_of(ctx)
    deployed = environment.deployed(stack)
    found = deployed.registry.list()
    answers = {c.name: wide_of(deployed, c) for c in found} if wide else {}
    if as_json:
        print_json(
            {
                "stack": deployed.name,
                "kill_switch": deployed.kill_switch,
                "clusters": [
                    {name: said for name, said in asdict(c).items() if name not in _UNSAID}
                    | ({"wide": asdict(answers[c.name])} if wide else {})
                    for c in found
                ],
            }
        )
        return
    if not found:
        click.echo("No cluster is registered: add one with `plimsoll clusters add NAME`.")
    else:
        _show_clusters(found, answers, environment.clock.now())
    if deployed.kill_switch:
        warn("the kill switch of the stack is on: nothing is written, whatever the mode")


def _show_clusters(found: Sequence[Cluster], answers: Mapping[str, Wide], now: datetime) -> None:
    if not answers:
        shown = table("NAME", "MODE", "REACHED BY", "REGION", "ADDED")
        for c in found:
            shown.add_row(c.name, c.mode, c.endpoint or "EKS", c.region, clock_text(c.added))
        console().print(shown)
        return
    shown = table(
        "NAME", "MODE", "ACCOUNT", "REGION", "VERSION", "RIGHTS", "NODE INDEX", "LAST STORM"
    )
    for c in found:
        shown.add_row(c.name, c.mode, c.account or "-", c.region, *answers[c.name].cells(now))
    console().print(shown)
    for answer in answers.values():
        for words in answer.not_read:
            warn(f"{answer.name}: {words}")


@clusters.command("set", epilog=EXAMPLES)
@click.argument("name")
@click.option(
    "--mode",
    type=click.Choice([mode.value for mode in Mode]),
    help="observe plans and reports; act also writes.",
)
@click.option(
    "--on",
    "responses",
    multiple=True,
    metavar="KIND=RESPONSE",
    help=f"What a kind of notice leads to: {listed(Response)}. KIND: {listed(KINDS)}. "
    "May be given more than once.",
)
@click.option(
    "--nodes-per-hour",
    type=HOURLY,
    metavar="N|default",
    help="How many nodes are cordoned in an hour on advice alone, which is a rebalance "
    "recommendation or a Health change without a near deadline; default is a tenth of the nodes, "
    "at least one.",
)
@click.option(
    "--moves-per-hour",
    type=HOURLY,
    metavar="N|default",
    help="How many pods are moved in an hour to keep on-demand floors and to return to spot; default is "
    "a tenth of the pods, at least twenty.",
)
@click.option(
    "--maintenance-window",
    "window",
    type=WINDOW,
    metavar='"DAYS HH:MM-HH:MM"|none',
    help="When nodes are drained for changes that AWS Health announced, in UTC: "
    '"sat,sun 22:00-04:00". Without one, from a day before the change.',
)
@click.option(
    "--min-on-demand",
    type=FLOOR,
    metavar="N|N%",
    help="How many replicas of a workload, or which share, stand on on-demand nodes where neither it "
    "nor its namespace states a floor; not in kube-system.",
)
@click.option(
    "--overrule-budgets",
    type=click.Choice([NEVER_OVERRULED, "at-deadline"]),
    help="Whether a pod that its PodDisruptionBudget keeps is deleted at its eviction deadline, so that it "
    "stops in order before its instance goes (the default), or never.",
)
@click.option(
    "--agent",
    metavar="ID|none",
    help="The agent of the optimisation service in this cluster, as `plimsoll tenants invite` named it: "
    "of interruption taints that it forwards EC2 is asked at once.",
)
@click.option(
    "--role",
    metavar="ARN|none",
    help="The role that is assumed for it from now on; none: it is in the account of the stack.",
)
@click.option(
    "--external-id", metavar="TEXT", help="The external id that the role asks for from now on."
)
@click.option(
    "--beside-drainers",
    is_flag=True,
    help="Let it act although others drain the same nodes, and no workload is guarded.",
)
@click.option("--yes", is_flag=True, help="Do not ask.")
@stack_option
@click.pass_context
def set_(  # noqa: PLR0913, PLR0917 - the options of the command
    ctx: click.Context,
    name: str,
    mode: str | None,
    responses: tuple[str, ...],
    nodes_per_hour: int | Literal["default"] | None,
    moves_per_hour: int | Literal["default"] | None,
    window: MaintenanceWindow | Literal["none"] | None,
    min_on_demand: str | None,
    overrule_budgets: str | None,
    agent: str | None,
    role: str | None,
    external_id: str | None,
    beside_drainers: bool,
    yes: bool,
    stack: str,
) -> None:
    """Set whether Plimsoll writes to the cluster NAME, and what each kind of notice leads to."""
    policies = {nodes_per_hour, moves_per_hour, window, min_on_demand, overrule_budgets}
    given = policies | {mode, agent, role, external_id}
    if not responses and given == {None}:
        raise click.UsageError(
            "nothing to set: give a mode, an agent, a role, or a part of the policy"
        )
    deployed = environment_of(ctx).deployed(stack)
    cluster = registered(deployed, name)
    wanted = cluster.mode if mode is None else Mode(mode)
    policy = changed(
        cluster.policy,
        responses,
        nodes_per_hour,
        moves_per_hour,
        window,
        min_on_demand,
        overrule_budgets,
    )
    heard = _agent(agent, cluster.agent)
    after = replace(_by_role(cluster, role, external_id), mode=wanted, policy=policy, agent=heard)
    if after == cluster:
        click.echo(f"{name} is in the mode {wanted} already, under this policy: {policy}.")
        return
    if cluster.mode is not wanted and wanted is Mode.ACT:
        _agree_to_act(deployed, cluster, beside_drainers=beside_drainers, yes=yes)
    deployed.registry.update(after)
    if (cluster.role, cluster.external_id) != (after.role, after.external_id):
        click.echo(f"{name} is reached by {after.role or 'the roles of the stack'} now.")
    if cluster.agent != heard:
        click.echo(f"Of interruption taints in {name}, {heard or 'no agent'} is heard now.")
    if cluster.policy != policy:
        click.echo(f"The policy of {name} is now: {policy}.")
    if cluster.mode is not wanted:
        click.echo(f"{name} is in the mode {wanted} now.")
        if wanted is Mode.OBSERVE:
            click.echo("What is open stays as it is: `plimsoll status` lists it.")
    if wanted is Mode.ACT and deployed.kill_switch:
        warn("the kill switch of the stack is on: nothing is written until it is off")


@clusters.command(epilog=EXAMPLES)
@click.argument("name")
@click.option("--dry-run", is_flag=True, help="Say what would be put back, and write nothing.")
@click.option("--yes", is_flag=True, help="Do not ask.")
@click.option(
    "--force",
    is_flag=True,
    help="Remove it whatever is open in it, and touch nothing there: for a cluster that is no more.",
)
@stack_option
@click.pass_context
def remove(  # noqa: PLR0913, PLR0917 - the options of the command
    ctx: click.Context,
    name: str,
    dry_run: bool,
    yes: bool,
    force: bool,
    stack: str,
) -> None:
    """Put back what is changed in the cluster NAME, then remove it from the registry.

    Nodes that stay are uncordoned and lose their taint and record; releases of pods are undone. The
    cluster is kept while a node has minutes left: run the command again afterwards. It writes with
    your own rights in an EKS cluster, else with the token of the functions, and also while the kill
    switch is on.
    """
    if dry_run and force:
        raise click.UsageError("--force puts nothing back, so there is nothing to try: give one")
    environment = environment_of(ctx)
    deployed = environment.deployed(stack)
    cluster = registered(deployed, name)
    if force:
        name_what_is_left(deployed, cluster)
    elif not put_back(environment, deployed, cluster, dry_run=dry_run, yes=yes):
        ctx.exit(1)
    else:
        unbind_injection(deployed, cluster, dry_run=dry_run)
    if dry_run:
        click.echo(f"Nothing was written, and {name} is registered as before.")
        return
    deployed.registry.remove(name)
    click.echo(f"{name} is removed.")


def _agree_to_act(
    deployed: Deployed, cluster: Cluster, *, beside_drainers: bool, yes: bool
) -> None:
    """Say what acting means, and ask, once nobody else is in the way."""
    if not beside_drainers:
        refuse_beside_drainers(deployed, cluster)
    click.echo(ACTING.format(name=cluster.name))
    if not yes:
        click.confirm(f"Let Plimsoll write to {cluster.name}?", abort=True)


def _by_role(cluster: Cluster, role: str | None, external_id: str | None) -> Cluster:
    """Return a cluster with its role and external id as given; what is not given stays."""
    if role == "none":
        if external_id is not None:
            raise click.UsageError("--role none needs no --external-id")
        return replace(cluster, role=None, external_id=None)
    found = replace(
        cluster, role=role or cluster.role, external_id=external_id or cluster.external_id
    )
    _check_role(found.role, found.external_id)
    return found


def _check_role(role: str | None, external_id: str | None) -> None:
    if (role is None) != (external_id is None):
        raise click.UsageError("--role and --external-id go together")
    if role is not None and not _ROLE.fullmatch(role):
        raise BadInput(f"--role {role}: it is an ARN as in arn:aws:iam::123456789012:role/NAME")


def _agent(given: str | None, known: str | None) -> str | None:
    if given is None or given == "none":
        return known if given is None else None
    if not AGENT_ID.fullmatch(given):
        raise BadInput(f"--agent {given!r}: it is named as in a-d12436e2cf24b1d86001dfd9")
    return given


def _certificate(file: Path) -> str:
    try:
        text = file.read_text(encoding="ascii")
    except OSError as error:
        raise BadInput(f"--ca {file}: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise BadInput(f"--ca {file}: it is not PEM but binary; convert it to PEM") from error
    if "-----BEGIN CERTIFICATE-----" not in text:
        raise BadInput(f"--ca {file}: there is no certificate in it (-----BEGIN CERTIFICATE-----)")
    return text
