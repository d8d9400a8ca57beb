"""`plimsoll clusters`: the clusters of a deployed stack, their modes and policies."""

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
    Output,
    clock_text,
    console,
    output_option,
    print_answer,
    registered,
    stack_option,
    table,
)
from plimsoll_cli.policy_options import FLOOR, HOURLY, KINDS, NAMESPACE, WINDOW, changed, listed
from plimsoll_cli.uninstall import name_what_is_left, put_back, unbind_injection

EXAMPLES: Final = """\b
Examples:
  plimsoll clusters add harbor
  plimsoll clusters add lab --endpoint https://10.0.0.1:6443 --ca ca.pem --secret plimsoll/lab
  plimsoll clusters add quay --role arn:aws:iam::210987654321:role/plimsoll-spoke-us-east-1 --external-id KEY
  plimsoll clusters list --output json
  plimsoll clusters list --wide
  plimsoll clusters set harbor --mode act
  plimsoll clusters set harbor --mode act --act-in staging --act-in web
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
  1  you did not confirm, or an interruption is still open in the cluster
  2  an argument is wrong, or the stack or the cluster cannot be reached
"""

_UNSAID: Final = frozenset({"ca", "external_id"})
"""Fields of a cluster that are not printed: too long, or secret."""
_ROLE: Final = re.compile(r"arn:aws[a-z-]*:iam::[0-9]{12}:role/[A-Za-z0-9+=,.@_/-]{1,128}")
ACTING: Final = """\
In the mode act Plimsoll writes to {name}:
  - it cordons, taints and annotates interrupted nodes;
  - it releases pods of Deployments: one label, the owner and one annotation of a pod change, and its
    ReplicaSet creates a replacement; no workload changes;
  - it evicts pods, and deletes a pod at its eviction deadline even if a PodDisruptionBudget refuses;
  - it adds nodes to node groups tagged for it.
Plimsoll leaves alone every workload with the label or annotation plimsoll.dev/ignore: "true", and with --act-in
everything outside the namespaces that you name. To stop it, run
`plimsoll clusters set {name} --mode observe`, or set the kill switch of the stack for all clusters."""


@click.group(epilog=EXAMPLES)
def clusters() -> None:
    """Manage the clusters of a stack.

    A cluster starts in the mode observe: Plimsoll plans and reports, and writes nothing.
    """


@clusters.command(epilog=EXAMPLES)
@click.argument("name")
@click.option("--eks", is_flag=True, help="Register the EKS cluster of this name. [default]")
@click.option(
    "--endpoint",
    metavar="URL",
    help="Register another cluster by the address of its API, https://HOST:PORT.",
)
@click.option(
    "--ca",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="With --endpoint: trust this CA certificate, in PEM.",
)
@click.option(
    "--secret",
    metavar="ARN_OR_NAME",
    help="With --endpoint: read the token from this secret in Secrets Manager, named plimsoll/….",
)
@click.option(
    "--region", metavar="REGION", help="Set the region of the cluster. [default: the stack's]"
)
@click.option(
    "--role",
    metavar="ARN",
    help="Assume this role, made by infra/spoke.yaml, for a cluster in another account.",
)
@click.option("--external-id", metavar="TEXT", help="With --role: send this external id.")
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
    """Register a cluster in the mode observe."""
    if eks and endpoint is not None:
        raise click.UsageError("give either --eks or --endpoint")
    if endpoint is None and (ca is not None or secret is not None):
        raise click.UsageError("--ca and --secret need --endpoint; an EKS cluster needs neither")
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
            f"{error}: choose another name, or remove that cluster first "
            f"(plimsoll clusters remove {name})"
        ) from error
    click.echo(
        f"{name} is registered in the mode observe. Grant the rights of infra/cluster to the "
        f"identity of Plimsoll, and read the reports. Then: plimsoll clusters set {name} --mode act"
    )


@clusters.command("list", epilog=EXAMPLES)
@click.option(
    "--wide",
    is_flag=True,
    help="Also read from each cluster its version, held and missing rights, the age of its node index and its last "
    "storm. Rights in an EKS cluster need an administrator of the cluster.",
)
@output_option
@stack_option
@click.pass_context
def list_(
    ctx: click.Context,
    wide: bool,
    output: Output,
    stack: str,
) -> None:
    """List the registered clusters."""
    environment = environment_of(ctx)
    deployed = environment.deployed(stack)
    found = deployed.registry.list()
    answers = {c.name: wide_of(deployed, c) for c in found} if wide else {}
    if output != "table":
        print_answer(
            {
                "stack": deployed.name,
                "kill_switch": deployed.kill_switch,
                "clusters": [
                    {name: said for name, said in asdict(c).items() if name not in _UNSAID}
                    | ({"wide": asdict(answers[c.name])} if wide else {})
                    for c in found
                ],
            },
            output,
        )
        return
    if not found:
        click.echo("No cluster is registered: add one with `plimsoll clusters add NAME`.")
    else:
        _show_clusters(found, answers, environment.clock.now())
    if deployed.kill_switch:
        warn("the kill switch of the stack is on: Plimsoll writes to no cluster")


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
    help="Plan and report only (observe), or also write (act).",
)
@click.option(
    "--on",
    "responses",
    multiple=True,
    metavar="KIND=RESPONSE",
    help=f"Respond to a kind of notice with {listed(Response, 'or')}. Repeat it for several kinds: {listed(KINDS)}.",
)
@click.option(
    "--nodes-per-hour",
    type=HOURLY,
    metavar="N|default",
    help="Cordon at most this many nodes per hour for rebalance recommendations and Health changes "
    "without a near deadline; default is a tenth of the nodes, at least one.",
)
@click.option(
    "--moves-per-hour",
    type=HOURLY,
    metavar="N|default",
    help="Move at most this many pods per hour to restore on-demand floors and to return to spot; default is "
    "a tenth of the pods, at least twenty.",
)
@click.option(
    "--maintenance-window",
    "window",
    type=WINDOW,
    metavar='"DAYS HH:MM-HH:MM"|none',
    help="Drain nodes for AWS Health changes in this window, in UTC, such as "
    '"sat,sun 22:00-04:00". Without a window, Plimsoll starts a day before the change.',
)
@click.option(
    "--min-on-demand",
    type=FLOOR,
    metavar="N|N%",
    help="Keep this many or this share of a workload's replicas on on-demand nodes, where neither the "
    "workload nor its namespace states a floor; not in kube-system.",
)
@click.option(
    "--overrule-budgets",
    type=click.Choice([NEVER_OVERRULED, "at-deadline"]),
    help="Overrule a PodDisruptionBudget at the pod's eviction deadline, so that the pod can stop before its "
    "instance does (the default), or never.",
)
@click.option(
    "--act-in",
    type=NAMESPACE,
    multiple=True,
    metavar="NAMESPACE|'*'",
    help="In the mode act, write to the pods and workloads of these namespaces only; '*': of all. Repeat it for "
    "several. The list replaces the one before. Nodes are cordoned in any case.",
)
@click.option(
    "--agent",
    metavar="ID|none",
    help="Accept interruption taints from this agent of the optimisation service, named by "
    "`plimsoll tenants invite`. Plimsoll checks each taint with EC2.",
)
@click.option(
    "--role",
    metavar="ARN|none",
    help="Assume this role for the cluster; none: the cluster is in the account of the stack.",
)
@click.option("--external-id", metavar="TEXT", help="Send this external id with the role.")
@click.option(
    "--beside-drainers",
    is_flag=True,
    help="Act even if other programs drain the same nodes and no workload is guarded.",
)
@click.option("--yes", is_flag=True, help="Skip the confirmation.")
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
    act_in: tuple[str, ...],
    agent: str | None,
    role: str | None,
    external_id: str | None,
    beside_drainers: bool,
    yes: bool,
    stack: str,
) -> None:
    """Set the mode, policy, agent or role of a cluster."""
    policies = {nodes_per_hour, moves_per_hour, window, min_on_demand, overrule_budgets}
    given = policies | {mode, agent, role, external_id}
    if not (responses or act_in) and given == {None}:
        raise click.UsageError(
            "nothing to set: give a mode, an agent, a role, or an option of the policy"
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
        act_in,
    )
    _check_stack(deployed, named=bool(policy.act_in) and policy.act_in != cluster.policy.act_in)
    heard = _agent(agent, cluster.agent)
    after = replace(_by_role(cluster, role, external_id), mode=wanted, policy=policy, agent=heard)
    if after == cluster:
        click.echo(f"{name} is already in the mode {wanted}, with this policy: {policy}.")
        return
    if cluster.mode is not wanted and wanted is Mode.ACT:
        _agree_to_act(deployed, cluster, beside_drainers=beside_drainers, yes=yes)
    deployed.registry.update(after)
    if (cluster.role, cluster.external_id) != (after.role, after.external_id):
        click.echo(f"Plimsoll now reaches {name} with {after.role or 'the roles of the stack'}.")
    if cluster.agent != heard:
        click.echo(
            f"Plimsoll now accepts interruption taints in {name} from {heard or 'no agent'}."
        )
    if cluster.policy != policy:
        click.echo(f"The policy of {name} is now: {policy}.")
    if cluster.mode is not wanted:
        click.echo(f"{name} is now in the mode {wanted}.")
        if wanted is Mode.OBSERVE:
            click.echo("Open interruptions stay as they are: `plimsoll status` lists them.")
    if wanted is Mode.ACT and deployed.kill_switch:
        warn("the kill switch of the stack is on: Plimsoll writes nothing until it is off")


@clusters.command(epilog=EXAMPLES)
@click.argument("name")
@click.option("--dry-run", is_flag=True, help="Print the changes, and write nothing.")
@click.option("--yes", is_flag=True, help="Skip the confirmation.")
@click.option(
    "--force",
    is_flag=True,
    help="Remove only the registration, whatever is open: for a cluster that no longer exists.",
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
    """Revert Plimsoll's changes in a cluster, then remove the cluster.

    Plimsoll uncordons nodes that stay, deletes their taint and record, and undoes releases of pods. While
    an instance is about to stop, the cluster stays registered: run the command again afterwards.

    The command writes with your own rights in an EKS cluster, and with the functions' token in another,
    even while the kill switch is on.
    """
    if dry_run and force:
        raise click.UsageError("give either --force, which reverts nothing, or --dry-run")
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
        click.echo(f"Nothing was written, and {name} is still registered.")
        return
    deployed.registry.remove(name)
    click.echo(f"{name} is removed.")


def _agree_to_act(
    deployed: Deployed, cluster: Cluster, *, beside_drainers: bool, yes: bool
) -> None:
    """Refuse beside other drainers; else print what the mode act does, and ask."""
    if not beside_drainers:
        refuse_beside_drainers(deployed, cluster)
    click.echo(ACTING.format(name=cluster.name))
    if not yes:
        click.confirm(f"Let Plimsoll write to {cluster.name}?", abort=True)


def _check_stack(deployed: Deployed, *, named: bool) -> None:
    """Refuse to name namespaces to functions that would read over them and act in all."""
    there = deployed.facts.version or "0"
    if named and [*map(int, re.findall("[0-9]+", there)[:2])] < [0, 2]:
        raise BadInput(
            f"--act-in: the functions of the stack {deployed.name} are of version {there} and act in "
            "every namespace: deploy version 0.2.0 or newer first"
        )


def _by_role(cluster: Cluster, role: str | None, external_id: str | None) -> Cluster:
    """Return a cluster with the role and external id that the options give, if any."""
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
        raise click.UsageError("give --role and --external-id together")
    if role is not None and not _ROLE.fullmatch(role):
        raise BadInput(f"--role {role}: give an ARN such as arn:aws:iam::123456789012:role/NAME")


def _agent(given: str | None, known: str | None) -> str | None:
    if given is None or given == "none":
        return known if given is None else None
    if not AGENT_ID.fullmatch(given):
        raise BadInput(f"--agent {given!r}: give an id such as a-d12436e2cf24b1d86001dfd9")
    return given


def _certificate(file: Path) -> str:
    try:
        text = file.read_text(encoding="ascii")
    except OSError as error:
        raise BadInput(f"--ca {file}: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise BadInput(f"--ca {file}: the file is binary; convert it to PEM") from error
    if "-----BEGIN CERTIFICATE-----" not in text:
        raise BadInput(f"--ca {file}: the file holds no certificate (-----BEGIN CERTIFICATE-----)")
    return text
