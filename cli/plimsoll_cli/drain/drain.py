"""`plimsoll drain`: drain nodes by hand like `kubectl drain`, but start replacements first."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from pathlib import Path
from typing import Any, Final, Literal

import click

from plimsoll.adapters.workers import SerialWorkers
from plimsoll.domain.drain import DrainPlan, DrainRequest, plan_nodes, plan_undo
from plimsoll.domain.errors import BadInput
from plimsoll.domain.kubernetes import Selector, matches, parse_duration, parse_labels
from plimsoll.domain.observation import Observation
from plimsoll.services.node_drain import End, NodeDrain, waits
from plimsoll_cli.drain.progress import Progress
from plimsoll_cli.environment import Environment
from plimsoll_cli.kubeconfig_options import kubeconfig_options
from plimsoll_cli.options import Output, environment_of, output_option, print_answer

type Ending = End | Literal["interrupted", "undone", "dry run"]

EXAMPLES: Final = """\b
Examples:
  plimsoll drain ip-10-0-3-7.ec2.internal --dry-run
  plimsoll drain ip-10-0-3-7.ec2.internal --timeout 10m
  plimsoll drain -l eks.amazonaws.com/nodegroup=old --context harbor --output json
  plimsoll drain ip-10-0-3-7.ec2.internal --undo
  kubectl plimsoll drain ip-10-0-3-7.ec2.internal

\b
Exit status:
  0  only DaemonSet and mirror pods are left on the nodes; with --dry-run: no pod would stay
  1  a pod blocks, the timeout is over, or a node was uncordoned; the output names the pods left.
     With --dry-run: a pod would stay, because it blocks, or because nothing can be done about it
     until somebody changes what it waits for
  2  an argument is wrong, a right is missing, or the cluster cannot be reached
"""


@click.command(epilog=EXAMPLES)
@click.argument("nodes", nargs=-1, metavar="[NODE]...")
@click.option("--selector", "-l", metavar="LABELS", help="Drain the nodes with these labels.")
@kubeconfig_options
@click.option("--dry-run", is_flag=True, help="Print the actions, and write nothing.")
@click.option(
    "--timeout",
    default="0s",
    metavar="DURATION",
    help="Give up after this time, such as 90s or 10m. [default: never]",
)
@click.option(
    "--overrule-budgets",
    is_flag=True,
    help="With --timeout: overrule PodDisruptionBudgets in time for each pod to stop. Budgets of Jobs still hold.",
)
@click.option(
    "--allow-pending",
    is_flag=True,
    help="Release pods even if no node has headroom, so that an autoscaler adds nodes for Pending pods.",
)
@click.option("--force", is_flag=True, help="Also evict bare pods, which no controller replaces.")
@click.option(
    "--grace-period",
    type=click.IntRange(min=-1),
    default=-1,
    metavar="SECONDS",
    help="Override the grace period of every pod; -1 keeps each pod's own.",
)
@click.option(
    "--ignore-daemonsets",
    is_flag=True,
    expose_value=False,
    help="Do nothing: always in effect. For `kubectl drain` compatibility.",
)
@click.option(
    "--delete-emptydir-data",
    is_flag=True,
    expose_value=False,
    help="Do nothing: always in effect. For `kubectl drain` compatibility.",
)
@click.option("--undo", is_flag=True, help="Uncordon the nodes and undo releases.")
@output_option
@click.pass_context
def drain(  # noqa: PLR0913, PLR0917 - the options of the command
    ctx: click.Context,
    nodes: tuple[str, ...],
    selector: str | None,
    context: str | None,
    kubeconfig: Path | None,
    dry_run: bool,
    timeout: str,
    overrule_budgets: bool,
    allow_pending: bool,
    force: bool,
    grace_period: int,
    undo: bool,
    output: Output,
) -> None:
    """Drain nodes with a kubeconfig alone, and start replacements first.

    Plimsoll cordons the nodes and releases every Ready pod of a Deployment: the Deployment creates a
    replacement, and the released pod serves until the replacement is available. A single replica, or a
    PodDisruptionBudget that allows no disruption, neither blocks the drain nor falls to zero.

    Pods of StatefulSets leave one at a time, as headroom allows. Plimsoll evicts pods of Jobs, and
    leaves pods of DaemonSets. Data in emptyDir volumes is lost. PodDisruptionBudgets hold unless you
    give --overrule-budgets.

    After Ctrl-C, released pods continue to serve: run the command again, or with --undo. The command
    takes no Lease, and every write has a precondition: it is safe beside another drain or a deployed Plimsoll.
    """
    environment = environment_of(ctx)
    if bool(nodes) is (selector is not None):
        raise click.UsageError("give node names, or select nodes with --selector")
    if grace_period == 0:
        raise BadInput("--grace-period 0 would delete running pods by force: give 1 or more")
    limit = parse_duration(timeout)
    if overrule_budgets and not limit:
        raise click.UsageError(
            "--overrule-budgets needs --timeout, the time by which pods must stop"
        )
    cluster, api = environment.by_kubeconfig(kubeconfig, context)
    seen = api.observe()
    started = environment.clock.now()
    request = DrainRequest(
        nodes=_chosen(seen, nodes, selector),
        started=started,
        until=started + limit if limit else None,
        overrule_budgets=overrule_budgets,
        allow_pending=allow_pending,
        force=force,
        grace_seconds=None if grace_period < 0 else grace_period,
    )
    progress = Progress(clock=environment.clock, quiet=output != "table")
    work = NodeDrain(api=api, clock=environment.clock, workers=SerialWorkers(), progress=progress)
    left: DrainPlan | None = None
    end: Ending = "interrupted"
    try:
        if dry_run:
            end, left = "dry run", _rehearse(seen, request, progress, undo=undo)
        elif undo:
            work.undo(request.nodes)
            end = "undone"
        else:
            end, left = work.run(request)
    except KeyboardInterrupt:
        progress.say("released pods continue to serve: run the command again, or with --undo")
    if output != "table":
        print_answer(_as_data(cluster, request, environment, end, progress, left), output)
    if end == "interrupted":
        raise KeyboardInterrupt
    _conclude(end, request, left, progress)
    unfinished = end == "dry run" and left is not None and (left.blocked or left.held)
    if unfinished or end not in {"drained", "undone", "dry run"}:
        ctx.exit(1)


def _chosen(seen: Observation, names: Sequence[str], selector: str | None) -> frozenset[str]:
    if selector is not None:
        chosen = _labels(selector)
        found = frozenset(node.name for node in seen.nodes if matches(chosen, node.labels))
        if not found:
            raise BadInput(f"--selector {selector}: no node has these labels")
        return found
    unknown = [name for name in names if name not in seen.node]
    if unknown:
        raise BadInput(
            f"the cluster has no node {', '.join(unknown)}: `kubectl get nodes` lists them"
        )
    return frozenset(names)


def _labels(text: str) -> Selector:
    """Read labels as kubectl does; no labels at all would mean every node."""
    if not text.strip():
        raise BadInput("--selector is empty: give labels such as app=web")
    try:
        return parse_labels(text)
    except BadInput as error:
        raise BadInput(f"--selector: {error}; give labels such as app=web") from error


def _rehearse(
    seen: Observation, request: DrainRequest, progress: Progress, *, undo: bool
) -> DrainPlan:
    for name in sorted(request.nodes):
        if seen.node[name].unschedulable is undo:
            verb = "uncordon" if undo else "cordon"
            progress.log(
                "would", action=f"would {verb}", target=f"Node {name}", because="you asked for it"
            )
    found = plan_nodes(seen, request, request.started)
    if undo:
        steps = plan_undo(seen, request.nodes, request.started)
        found = DrainPlan(plan=steps, left=(), blocked={})
    for step in found.plan.steps:
        action = step.action
        progress.log(
            "would", action=f"would {action.verb}", target=action.target, because=action.reason
        )
    for words in waits(found):
        progress.once(f"would wait: {words}")
    return found


def _conclude(
    end: Ending, request: DrainRequest, left: DrainPlan | None, progress: Progress
) -> None:
    for name, why in ({} if left is None else left.blocked).items():
        progress.say(f"Pod {name} stays: {why}")
    if left is not None and end == "dry run":
        for pod in left.held:
            progress.say(f"Pod {pod} would stay until that changes for which it waits")
    if left is not None and end in {"timed out", "called off"}:
        for pod in left.left:
            progress.say(f"left on {pod.node}: Pod {pod}")
        for words in waits(left):
            progress.say(f"blocks: {words}")
    progress.say(f"{', '.join(sorted(request.nodes))}: {end}")


def _as_data(  # noqa: PLR0913, PLR0917 - the parts of the answer
    cluster: str,
    request: DrainRequest,
    environment: Environment,
    end: Ending,
    progress: Progress,
    left: DrainPlan | None,
) -> dict[str, Any]:
    return {
        "context": cluster,
        "nodes": sorted(request.nodes),
        "end": end,
        "seconds": round((environment.clock.now() - request.started) / timedelta(seconds=1), 1),
        "actions": progress.actions,
        "left": [] if left is None else [str(pod) for pod in left.left],
        "waiting": [] if left is None else list(waits(left)),
        "held": [] if left is None else [str(pod) for pod in left.held],
        "blocked": {} if left is None else left.blocked,
    }
