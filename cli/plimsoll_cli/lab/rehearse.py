"""`plimsoll rehearse`: an interruption of a live cluster, simulated, or the plan for one event; the cluster is only read."""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any, Final

import click
from click.core import ParameterSource

from plimsoll.adapters.kubernetes.requests import Requests
from plimsoll.domain.errors import BadInput
from plimsoll.domain.interruptions import Response
from plimsoll.domain.notices import SpotInterruption
from plimsoll.domain.registry import Cluster
from plimsoll.services.ports import Clock
from plimsoll_cli.environment import Deployed, Environment, Said
from plimsoll_cli.lab.rehearsal_event import show_event
from plimsoll_cli.lab.rehearsal_groups import FORM, groups_of
from plimsoll_cli.lab.rehearsal_rows import (
    ASKED,
    HEAD,
    MARKS,
    OBSTACLES,
    asked_rows,
    mark_rows,
    obstacle_rows,
    outcome_rows,
    played,
    verdict,
)
from plimsoll_cli.options import (
    Choice,
    Output,
    Terminal,
    cluster_options,
    console,
    environment_of,
    output_option,
    print_answer,
    registered,
    table,
)
from plimsoll_cli.targets import check_target, write_target
from plimsoll_console.exports import exported
from plimsoll_console.sources import ClusterState, Rehearsal
from plimsoll_console.views.rehearsal import rehearsal
from plimsoll_simulation.output.live import LiveView
from plimsoll_simulation.rehearsal.live import LiveCluster, read_cluster
from plimsoll_simulation.rehearsal.prediction import Prediction, prediction_of
from plimsoll_simulation.rehearsal.scenario import Modelled, modelled
from plimsoll_simulation.rehearsal.scope import Scope, pool
from plimsoll_simulation.rigs.registry import RESPONDERS, SIMULATED, rig_of
from plimsoll_simulation.scenario.drill import read_drill

EXAMPLES: Final = """\b
Examples:
  plimsoll rehearse --cluster harbor
  plimsoll rehearse --context harbor --zone us-east-1a
  plimsoll rehearse --context harbor --group base=m6i.large,on-demand,max=6
  plimsoll rehearse --context harbor --groups node-groups.yaml
  plimsoll rehearse --cluster harbor --family m5 --output json
  plimsoll rehearse --cluster harbor --pool m5.large/us-east-1a --html rehearsal.html
  plimsoll rehearse --cluster harbor --zone us-east-1a --record
  plimsoll rehearse --context harbor --keep rehearsal && plimsoll drill rehearsal/rehearsal.yaml --compare
  plimsoll rehearse --event notice.json --cluster harbor --output json
  plimsoll rehearse --event tests/events/spot-interruption.json --context harbor --now --instance i-0abc…
  aws sqs receive-message … | jq -r .Messages[0].Body | plimsoll rehearse --event -

\b
Exit status:
  0  every workload would keep a Ready pod; with --event: the plan was printed, or the reason why there is none
  1  a workload would be at zero
  2  an argument or the event is wrong, or the stack or the cluster cannot be reached
"""
SHOWN: Final = 20
"""Workloads whose marks are printed."""
_OF_EVENT: Final = {"instance", "now"}
_OF_EITHER: Final = {"event", "stack", "cluster", "kubeconfig", "context", "output"}
_RESPONSES: Final = (
    "the policy of the cluster responds to spot interruptions with {}; the rehearsal plays move"
)
_ACTS_IN: Final = "the policy of the cluster acts only in {}; the rehearsal acts in all namespaces"


@click.command(epilog=EXAMPLES)
@click.option("--all-spot", is_flag=True, help="Interrupt all spot instances at once. [default]")
@click.option("--zone", metavar="ZONE", help="Interrupt the spot instances of a zone.")
@click.option(
    "--family", metavar="FAMILY", help="Interrupt the spot instances of a family, such as m5."
)
@click.option(
    "--pool", "pool_", metavar="TYPE/ZONE", help="Interrupt the spot instances of a capacity pool."
)
@click.option(
    "--responder",
    type=click.Choice(RESPONDERS),
    default=RESPONDERS[0],
    show_default=True,
    help="Respond with Plimsoll, with a handler that evicts everything at once, or not at all.",
)
@click.option(
    "--group",
    "group_texts",
    multiple=True,
    metavar=FORM,
    help="Without a stack: this node group may grow, as in base=m6i.large,on-demand,max=6. Repeat it for each group.",
)
@click.option(
    "--groups",
    "group_file",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="Without a stack: the node groups in this YAML file may grow.",
)
@click.option("--html", metavar="FILE", help="Write a web page that needs no network.")
@click.option(
    "--keep",
    type=click.Path(path_type=Path),
    metavar="DIRECTORY",
    help="Keep the drill. It holds names, labels and requests, and no secrets.",
)
@click.option(
    "--record",
    is_flag=True,
    help="Store the prediction in the stack, and compare the reports of real interruptions with it.",
)
@click.option(
    "--event",
    metavar="FILE",
    help="Show the plan for the event in FILE instead, and simulate nothing. - is standard input.",
)
@click.option("--instance", metavar="ID", help="Replace the instance of the event by this one.")
@click.option("--now", is_flag=True, help="Replace the time of the event by the present.")
@cluster_options
@output_option
@click.pass_context
def rehearse(  # noqa: PLR0913, PLR0917 - the options of the command
    ctx: click.Context,
    all_spot: bool,
    zone: str | None,
    family: str | None,
    pool_: str | None,
    responder: str,
    group_texts: tuple[str, ...],
    group_file: Path | None,
    html: str | None,
    keep: Path | None,
    record: bool,
    event: str | None,
    instance: str | None,
    now: bool,
    choice: Choice,
    output: Output,
) -> None:
    """Read a cluster once, and simulate an interruption of its spot instances.

    The model starts with the present state of the cluster, and Plimsoll's own code acts on it as in
    the mode act. The instances get two minutes' notice, and their capacity pools give no others.

    With --context you need neither stack nor AWS account. Say with --group which node groups may grow:
    otherwise the model adds no nodes.

    With --event the command simulates nothing, and shows what Plimsoll would do now on that event. Plimsoll
    looks for the instance in the cluster that you name, else in the node index of the stack and by the
    instance's tags. With --context the node groups are unknown, and the plan uses only present headroom.

    The command needs the list rights of infra/cluster, and writes nothing to the cluster. Only --record
    writes to AWS: it needs dynamodb:GetItem and dynamodb:PutItem on the table of reports.
    """
    _check_event(ctx, given=event is not None)
    if event is not None:
        show_event(environment_of(ctx), choice, output, event, instance=instance, now=now)
        return
    scope = _scope(all_spot=all_spot, zone=zone, family=family, pool_=pool_)
    if html is not None:
        check_target("--html", html)
    if record:
        _check_record(choice, responder)
    if (group_texts or group_file is not None) and not choice.by_kubeconfig:
        raise click.UsageError(
            "--group and --groups are for a cluster without a stack, named by --context or --kubeconfig: with "
            "--cluster, Plimsoll reads the node groups from AWS"
        )
    progress, environment = console(stderr=True), environment_of(ctx)
    live, notes = _read(environment, choice, progress)
    if group_texts or group_file is not None:
        live = replace(live, groups=groups_of(group_texts, group_file, live.seen.nodes))
    drill = modelled(live, scope)
    drill = replace(drill, notes=(*notes, *drill.notes))
    found = _played(live, scope, drill, responder, keep, progress)
    if output != "table":
        print_answer(_as_data(found), output)
    else:
        _show(found)
    if html is not None:
        write_target("--html", html, _exported(found))
    if record:
        _record(environment.deployed(choice.stack), found, progress)
    if found.at_zero:
        ctx.exit(1)


def _check_event(ctx: click.Context, *, given: bool) -> None:
    """Refuse options of the simulation beside an event, and options of an event without one."""
    for param in ctx.command.params:
        name = param.name or ""
        if ctx.get_parameter_source(name) is not ParameterSource.COMMANDLINE:
            continue
        if given and name not in _OF_EVENT | _OF_EITHER:
            raise click.UsageError(f"--event simulates nothing: give no {param.opts[0]}")
        if not given and name in _OF_EVENT:
            raise click.UsageError(f"{param.opts[0]} changes an event: give --event FILE")


def _check_record(choice: Choice, responder: str) -> None:
    if choice.cluster is None:
        raise click.UsageError("--record needs a stack: name a registered cluster with --cluster")
    if responder != RESPONDERS[0]:
        raise click.UsageError(
            "--record stores only predictions for Plimsoll: give no other --responder"
        )


def _scope(*, all_spot: bool, zone: str | None, family: str | None, pool_: str | None) -> Scope:
    if sum((all_spot, zone is not None, family is not None, pool_ is not None)) > 1:
        raise click.UsageError("give one of --all-spot, --zone, --family and --pool")
    return Scope(zone=zone, family=family) if pool_ is None else pool(pool_)


def _read(
    environment: Environment, choice: Choice, progress: Terminal
) -> tuple[LiveCluster, Sequence[str]]:
    """Read the cluster that the options name, and with a stack its node groups."""
    if choice.by_kubeconfig:
        name, api = environment.by_kubeconfig(choice.kubeconfig, choice.context)
        return _listed(environment, api.requests, name, progress), ()
    if choice.cluster is None:
        raise BadInput("name the cluster with --cluster, or with --context of a kubeconfig")
    deployed = environment.deployed(choice.stack)
    cluster = registered(deployed, choice.cluster)
    live = _listed(environment, deployed.requests(cluster), cluster.name, progress)
    live = _with_times(deployed, environment.clock, cluster, _with_aws(deployed, cluster, live))
    return replace(live, keep_ready=cluster.policy.keep_ready), _about_policy(cluster)


def _listed(
    environment: Environment, requests: Requests, name: str, progress: Terminal
) -> LiveCluster:
    progress.print(f"reading {name}")
    live = read_cluster(requests, environment.clock)
    progress.print(f"{len(live.seen.nodes)} nodes, {len(live.seen.pods)} pods")
    return live


def _with_aws(deployed: Deployed, cluster: Cluster, live: LiveCluster) -> LiveCluster:
    """Return the reading with its node groups and the launches of its nodes."""
    groups = deployed.groups(cluster).list(live.seen.nodes)
    ids = [node.instance for node in live.seen.nodes if node.instance is not None]
    known = deployed.instances_of(cluster).describe(ids)
    launched = {id_: said.launched for id_, said in known.items() if said.launched is not None}
    return replace(live, groups=groups, launched=launched)


def _with_times(
    deployed: Deployed, clock: Clock, cluster: Cluster, live: LiveCluster
) -> LiveCluster:
    """Return the reading with what the stack remembers of how long pods take."""
    workloads = {live.seen.workload_of(pod) for pod in live.seen.pods}
    times = deployed.observed_times(clock, Said()).of(cluster.name, workloads)
    return replace(live, seen=replace(live.seen, times=times or {}), remembered=times is not None)


def _about_policy(cluster: Cluster) -> Sequence[str]:
    policy = cluster.policy
    answer = policy.of_kind(SpotInterruption.kind)
    return (
        *(() if answer is Response.MOVE else (_RESPONSES.format(answer),)),
        *((_ACTS_IN.format(", ".join(policy.act_in)),) if policy.act_in else ()),
    )


def _played(  # noqa: PLR0913, PLR0917 - what is played, and how
    live: LiveCluster,
    scope: Scope,
    drill: Modelled,
    responder: str,
    keep: Path | None,
    progress: Terminal,
) -> Prediction:
    with tempfile.TemporaryDirectory(prefix="plimsoll-rehearsal-") as folder:
        script = read_drill(drill.write(keep or Path(folder)))
    with LiveView(progress, f"rehearsal of {live.name}", kept=False, lines="none") as listener:
        report = rig_of(SIMULATED)(script, responder=responder, seed=0, listener=listener)
    return prediction_of(live, scope, drill, report)


def _show(found: Prediction) -> None:
    out = console()
    out.print(verdict(found))
    for head, rows in (
        (HEAD, outcome_rows(found, harmed_only=True)),
        (MARKS, mark_rows(found)[:SHOWN]),
        (ASKED, asked_rows(found)),
        (OBSTACLES, obstacle_rows(found)),
    ):
        if rows:
            shown = table(*(name.upper() for name in head))
            for row in rows:
                shown.add_row(*row)
            out.print()
            out.print(shown)
    out.print()
    if (more := len(found.marks) - SHOWN) > 0:
        out.print(f"note: {more} more workloads stand on spot: --output json names them")
    for note in found.notes:
        out.print(f"note: {note}")


def _exported(found: Prediction) -> str:
    begun = Rehearsal(number=1, cluster=found.cluster, scope=found.scope, at=found.at)
    state = ClusterState(name=found.cluster, at=found.at)
    return exported(rehearsal, state, [played(begun, found)], number="1")


def _record(deployed: Deployed, found: Prediction, progress: Terminal) -> None:
    reports = list(found.reports())
    for report in reports:
        deployed.reports.merge(report)
    progress.print(
        f"recorded for {len(reports)} instances: `plimsoll reports` compares them with real interruptions"
    )


def _as_data(found: Prediction) -> dict[str, Any]:
    at_zero = [each.workload for each in found.at_zero]
    marks = [
        asdict(each) | {"marks": [mark._asdict() for mark in each.marks]} for each in found.marks
    ]
    return asdict(found) | {"at_zero": at_zero, "marks": marks}
