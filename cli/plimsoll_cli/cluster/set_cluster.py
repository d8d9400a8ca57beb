"""`plimsoll clusters set`: the mode, policy, agent and role of a cluster."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from typing import Final, Literal

import click

from plimsoll.adapters.workers import SerialWorkers
from plimsoll.domain.errors import BadInput, PlimsollError
from plimsoll.domain.interruptions import MaintenanceWindow, Response
from plimsoll.domain.kubernetes import NEVER_OVERRULED
from plimsoll.domain.notices import AGENT_ID
from plimsoll.domain.registry import Cluster, Mode
from plimsoll_cli.cluster.add_cluster import check_role
from plimsoll_cli.cluster.policy_options import (
    FLOOR,
    HOURLY,
    KINDS,
    NAMESPACE,
    PROMISE,
    WINDOW,
    changed,
    listed,
)
from plimsoll_cli.environment import Deployed, warn
from plimsoll_cli.options import environment_of, registered, stack_option
from plimsoll_cli.probes.drainers import holds_back, managed_spot
from plimsoll_cli.probes.kubernetes import KubernetesProbe
from plimsoll_cli.terminal import ask, say

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


@click.command("set")
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
    metavar="N|N%|auto",
    help="Keep this many or this share of a workload's replicas on on-demand nodes, where neither the "
    "workload nor its namespace states a floor; not in kube-system. auto: an even share of workloads whose "
    "pods start more slowly than a spot notice leaves time for.",
)
@click.option(
    "--keep-ready",
    type=PROMISE,
    metavar="N|N%[, TIME%]",
    help="Choose for each Deployment the cheapest layout by which so many or this share of its replicas are Ready for "
    "so much of the time, 99.9% unless you say so, where neither it nor its namespace promises anything; not in "
    "kube-system. 0: promise nothing.",
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
    "--return-to-spot/--no-return-to-spot",
    default=None,
    help="Move pods of workloads without an on-demand floor back to spot, one of a workload in five minutes, once the "
    "spot pool has stood for ten minutes, or for 30 where a replacement is Ready too late after a notice.",
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
    keep_ready: str | None,
    overrule_budgets: str | None,
    act_in: tuple[str, ...],
    return_to_spot: bool | None,
    agent: str | None,
    role: str | None,
    external_id: str | None,
    beside_drainers: bool,
    yes: bool,
    stack: str,
) -> None:
    """Set the mode, policy, agent or role of a cluster."""
    policies = {nodes_per_hour, moves_per_hour, window, min_on_demand, keep_ready, overrule_budgets}
    given = policies | {return_to_spot, mode, agent, role, external_id}
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
        keep_ready,
        overrule_budgets,
        act_in,
        return_to_spot=return_to_spot,
    )
    _check_stack(deployed, named=bool(policy.act_in) and policy.act_in != cluster.policy.act_in)
    heard = _agent(agent, cluster.agent)
    after = replace(_by_role(cluster, role, external_id), mode=wanted, policy=policy, agent=heard)
    if after == cluster:
        say(f"{name} is already in the mode {wanted}, with this policy: {policy}.")
        return
    if cluster.mode is not wanted and wanted is Mode.ACT:
        # Asked before anything is written: if the user declines, the policy stays too.
        _agree_to_act(deployed, cluster, beside_drainers=beside_drainers, yes=yes)
    deployed.registry.update(after)
    if (cluster.role, cluster.external_id) != (after.role, after.external_id):
        say(f"Plimsoll now reaches {name} with {after.role or 'the roles of the stack'}.")
    if cluster.agent != heard:
        say(f"Plimsoll now accepts interruption taints in {name} from {heard or 'no agent'}.")
    if cluster.policy != policy:
        say(f"The policy of {name} is now: {policy}.")
    if cluster.mode is not wanted:
        say(f"{name} is now in the mode {wanted}.")
        if wanted is Mode.OBSERVE:
            say("Open interruptions stay as they are: `plimsoll status` lists them.")
    if wanted is Mode.ACT and deployed.stack.kill_switch:
        warn("the kill switch of the stack is on: Plimsoll writes nothing until it is off")


def _agree_to_act(
    deployed: Deployed, cluster: Cluster, *, beside_drainers: bool, yes: bool
) -> None:
    """Refuse beside other drainers; else print what the mode act does, and ask."""
    if not beside_drainers:
        _refuse_beside_drainers(deployed, cluster)
    say(ACTING.format(name=cluster.name))
    if not yes:
        ask(f"Let Plimsoll write to {cluster.name}?")


def _check_stack(deployed: Deployed, *, named: bool) -> None:
    """Refuse to name namespaces to functions that would read over them and act in all."""
    there = deployed.stack.version or "0"
    if named and [*map(int, re.findall("[0-9]+", there)[:2])] < [0, 2]:
        raise BadInput(
            f"--act-in: the functions of the stack {deployed.stack.name} are of version {there} and act in "
            "every namespace: deploy version 0.2.0 or newer first"
        )


def _refuse_beside_drainers(deployed: Deployed, cluster: Cluster) -> None:
    """Refuse the mode act where others drain, and no budget makes them wait.

    If the cluster cannot be read, warn: the doctor checks whether it can be reached.

    Raises:
        BadInput: others drain; the message names them and the cure.
    """
    try:
        api = deployed.clusters.open(cluster)
        probe = KubernetesProbe(deployed.requests(cluster).transport, cluster.name, SerialWorkers())
        found = (
            []
            if probe.guards()
            else list(_drainers(deployed, cluster, probe, managed_spot(api.nodes())))
        )
    except PlimsollError as error:
        warn(f"cannot read which other programs drain nodes of {cluster.name}: {error}")
        return
    if found:
        raise BadInput(
            f"other programs drain nodes of {cluster.name}: {', '.join(found)}. They evict pods before the "
            "replacements serve. Delay Karpenter's queue (docs/guides/beside-karpenter.md), guard workloads (plimsoll guard "
            "install), or give --beside-drainers"
        )


def _delayed(deployed: Deployed, cluster: Cluster, queue: str) -> bool:
    """Whether Karpenter hears of an interruption only after Plimsoll; not where nobody may look."""
    try:
        return holds_back(deployed.aws.queue_delay(cluster, queue))
    except PlimsollError as error:
        warn(str(error))
        return False


def _drainers(
    deployed: Deployed, cluster: Cluster, probe: KubernetesProbe, managed: int
) -> Iterator[str]:
    for drainer in probe.drainers():
        queue = drainer.queue
        if drainer.drains and not (queue is not None and _delayed(deployed, cluster, queue)):
            yield f"{drainer.name} in namespace {drainer.namespace}"
    if managed:
        yield f"EKS, with {managed} spot nodes of managed node groups"


def _by_role(cluster: Cluster, role: str | None, external_id: str | None) -> Cluster:
    """Return a cluster with the role and external id that the options give, if any."""
    if role == "none":
        if external_id is not None:
            raise click.UsageError("--role none needs no --external-id")
        return replace(cluster, role=None, external_id=None)
    found = replace(
        cluster, role=role or cluster.role, external_id=external_id or cluster.external_id
    )
    check_role(found.role, found.external_id)
    return found


def _agent(given: str | None, known: str | None) -> str | None:
    if given is None or given == "none":
        return known if given is None else None
    if not AGENT_ID.fullmatch(given):
        raise BadInput(f"--agent {given!r}: give an id such as a-d12436e2cf24b1d86001dfd9")
    return given
