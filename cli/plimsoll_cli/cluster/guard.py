"""`plimsoll guard`: PodDisruptionBudgets that make other drainers wait until a replacement serves."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

import click

from plimsoll.adapters.kubernetes import KubernetesCluster
from plimsoll.adapters.kubernetes.calls import Call
from plimsoll.domain.actions import Guard, Unguard
from plimsoll.domain.disruptions import guard_name, plan_guard
from plimsoll.domain.errors import BadInput
from plimsoll.domain.kubernetes import (
    GUARD,
    GUARD_AT_WARNING,
    KUBE_SYSTEM,
    Ref,
    namespace_guards,
)
from plimsoll.domain.observation import Observation
from plimsoll_cli.kubeconfig_options import kubeconfig_options
from plimsoll_cli.options import Output, console, environment_of, output_option, print_answer, table
from plimsoll_cli.terminal import say

EXAMPLES: Final = """\b
Examples:
  plimsoll guard install shop --context harbor --dry-run
  plimsoll guard install shop billing/invoices
  plimsoll guard install shop --warned
  plimsoll guard status --output json
  plimsoll guard remove shop
  plimsoll guard remove --all

\b
Exit status:
  0  the command succeeded
  2  an argument is wrong, a right is missing, or the cluster cannot be reached
"""
COST: Final = (
    "No other program evicts pods of a guarded workload: Karpenter's consolidation, the Cluster Autoscaler and "
    "kubectl drain wait for Plimsoll. Plimsoll responds to the taints of the first two by default. For cordons, "
    "run: plimsoll clusters set NAME --on foreign-cordon=move"
)
_NAMESPACE: Final = Call(verb="patch", resource="namespaces")
_DEPLOYMENT: Final = Call(verb="patch", group="apps", resource="deployments")


@click.group()
def guard() -> None:
    """Protect workloads from other drainers with PodDisruptionBudgets."""


@guard.command(epilog=EXAMPLES)
@click.argument("targets", nargs=-1, required=True, metavar="NAMESPACE[/DEPLOYMENT]...")
@click.option(
    "--warned", is_flag=True, help="Guard only while a node of the workload has an open notice."
)
@click.option("--dry-run", is_flag=True, help="Print the changes, and write nothing.")
@kubeconfig_options
@click.pass_context
def install(  # noqa: PLR0913, PLR0917 - the options of the command
    ctx: click.Context,
    targets: tuple[str, ...],
    warned: bool,
    dry_run: bool,
    context: str | None,
    kubeconfig: Path | None,
) -> None:
    """Guard all workloads of a namespace, or one Deployment.

    The command writes labels and budgets with your own rights. Placement updates the budgets every five
    minutes. The functions need the rights of: plimsoll clusters add NAME --context CONTEXT --overlay guard
    """
    _, api = environment_of(ctx).by_kubeconfig(kubeconfig, context)
    seen = api.observe()
    for target in targets:
        _check(seen, target)
    value = GUARD_AT_WARNING if warned else "true"
    for said in _labelled(api, targets, value, dry_run=dry_run):
        say(said)
    if dry_run:
        say("plimsoll guard status shows the budgets once the labels are written")
        return
    _kept(api)
    if not warned:
        say(COST)


@guard.command(epilog=EXAMPLES)
@click.argument("targets", nargs=-1, metavar="[NAMESPACE[/DEPLOYMENT]]...")
@click.option(
    "--all", "everything", is_flag=True, help="Remove every label and budget of Plimsoll."
)
@click.option("--dry-run", is_flag=True, help="Print the changes, and write nothing.")
@kubeconfig_options
@click.pass_context
def remove(  # noqa: PLR0913, PLR0917 - the options of the command
    ctx: click.Context,
    targets: tuple[str, ...],
    everything: bool,
    dry_run: bool,
    context: str | None,
    kubeconfig: Path | None,
) -> None:
    """Remove the labels and budgets of a namespace or a Deployment, with your own rights."""
    if bool(targets) is everything:
        raise click.UsageError("name namespaces or Deployments, or give --all")
    _, api = environment_of(ctx).by_kubeconfig(kubeconfig, context)
    seen = api.observe()
    if everything:
        marked = [w.ref for w in seen.workloads if GUARD in w.labels and w.ref.kind == "Deployment"]
        targets = (
            *sorted(namespace_guards(api.namespaces())),
            *(f"{r.namespace}/{r.name}" for r in marked),
        )
    for target in targets:
        _check(seen, target)
    for said in _labelled(api, targets, None, dry_run=dry_run):
        say(said)
    if not dry_run:
        _kept(api)


@guard.command(epilog=EXAMPLES)
@output_option
@kubeconfig_options
@click.pass_context
def status(
    ctx: click.Context, output: Output, context: str | None, kubeconfig: Path | None
) -> None:
    """Show which workloads opted in and are guarded, and the reasons for others."""
    cluster, api = environment_of(ctx).by_kubeconfig(kubeconfig, context)
    seen = api.observe()
    found = plan_guard(seen, namespace_guards(api.namespaces()))
    standing = {(b.ref.namespace, b.ref.name) for b in seen.budgets if b.guards}
    rows = [(ref, _state(ref, standing), "") for ref in found.guarded]
    rows += [(ref, "at a warning", "") for ref in found.calm]
    rows += [(ref, "left out", why) for ref, why in found.left_out.items()]
    rows.sort(key=lambda row: str(row[0]))
    if output != "table":
        print_answer(
            {
                "cluster": cluster,
                "workloads": [
                    {"workload": str(ref), "guard": state, "because": why or None}
                    for ref, state, why in rows
                ],
            },
            output,
        )
        return
    if not rows:
        say("No workload opted in: label one with `plimsoll guard install`.")
        return
    shown = table("WORKLOAD", "GUARD", "BECAUSE")
    for ref, state, why in rows:
        shown.add_row(str(ref), state, why)
    console().print(shown)


def _state(ref: Ref, standing: set[tuple[str, str]]) -> str:
    return "guarded" if (ref.namespace, guard_name(ref)) in standing else "pending"


def _check(seen: Observation, target: str) -> None:
    """Refuse a target that does not exist, before anything is written.

    Raises:
        BadInput: there is no such Deployment, or it is in kube-system.
    """
    namespace, _, name = target.partition("/")
    if namespace == KUBE_SYSTEM:
        raise BadInput(f"{target}: Plimsoll guards no workload of {KUBE_SYSTEM}")
    if name and Ref("Deployment", namespace, name) not in seen.workload:
        raise BadInput(
            f"{target}: there is no Deployment {name} in {namespace}. Label a Rollout yourself: "
            f"{GUARD}=true"
        )


def _labelled(
    api: KubernetesCluster, targets: Sequence[str], value: str | None, *, dry_run: bool
) -> Iterator[str]:
    body = {"metadata": {"labels": {GUARD: value}}}
    would = "would label" if dry_run else "label"
    what = f"{GUARD}={value}" if value else f"{GUARD} off"
    for target in targets:
        namespace, _, name = target.partition("/")
        if not dry_run and name:
            api.requests.send(_DEPLOYMENT, namespace=namespace, name=name, body=body)
        elif not dry_run:
            api.requests.send(_NAMESPACE, name=namespace, body=body)
        about = f"Deployment {target}" if name else f"Namespace {namespace}"
        yield f"{would} {what}: {about}"


def _kept(api: KubernetesCluster) -> None:
    """Create and delete budgets as placement would, and print the workloads left out."""
    found = plan_guard(api.observe(), namespace_guards(api.namespaces()))
    for step in found.steps:
        match step.action:
            case Guard(workload=workload, name=name):
                api.guard(workload, name)
            case Unguard(budget=budget):
                api.unguard(budget)
            case _:
                continue
        say(str(step))
    for ref, why in found.left_out.items():
        say(f"not guarded: {ref}: {why}")
