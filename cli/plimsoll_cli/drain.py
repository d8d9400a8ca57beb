"""`plimsoll drain`: nodes emptied by hand as `kubectl drain` does, but replacements first."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any, Final, Literal

import click

from plimsoll.adapters.workers import SerialWorkers
from plimsoll.domain.errors import BadInput, Conflict, MissingRights, Temporary
from plimsoll.domain.groups import NodeGroup
from plimsoll.domain.metrics import Metric
from plimsoll.domain.nodes import Node
from plimsoll.domain.observation import Observation
from plimsoll.domain.plan import Plan
from plimsoll.domain.pods import Requirement, Selector
from plimsoll.domain.selectors import matches
from plimsoll.domain.writers import Writers
from plimsoll.services.executor import Executor, Outcome, requested_pause
from plimsoll.services.ports import Clock, ClusterApi
from plimsoll_cli.environment import Environment, environment_of
from plimsoll_cli.node_drain import DrainPlan, DrainRequest, plan_nodes, plan_undo
from plimsoll_cli.options import json_option, print_json
from plimsoll_testbed.model.durations import parse_duration

PAUSE_SECONDS: Final = 1.0
"""Between two observations."""
TRIES: Final = 10
"""How often a change is tried again that somebody else's write came before."""
STUCK: Final = (
    "nothing can be done until that changes; --allow-pending releases pods without headroom, where "
    "an autoscaler adds nodes for Pending pods"
)
_TERM: Final = re.compile(
    r"\s*(?:(?P<absent>!)\s*)?(?P<key>[\w./-]+)\s*"
    r"(?:(?P<sign>==?|!=)\s*(?P<value>[\w.-]*)|(?P<set>in|notin)\s*\((?P<values>[^()]*)\))?\s*"
)
EXAMPLES: Final = """\b
Examples:
  plimsoll drain ip-10-0-3-7.ec2.internal --dry-run
  plimsoll drain ip-10-0-3-7.ec2.internal --timeout 10m
  plimsoll drain -l eks.amazonaws.com/nodegroup=old --context harbor --json
  plimsoll drain ip-10-0-3-7.ec2.internal --undo
  kubectl plimsoll drain ip-10-0-3-7.ec2.internal

\b
Exit status:
  0  every node is empty of all but DaemonSet and mirror pods; a dry run: nothing would block
  1  something blocks, the time is over, or somebody uncordoned a node; the answer names what is left
  2  a node or an option is wrong, a right is missing, or the cluster cannot be reached
"""

type End = Literal[
    "drained", "blocked", "timed out", "called off", "interrupted", "undone", "dry run"
]


@dataclass(slots=True, kw_only=True)
class Progress:
    """What a drain has done and said. Implements the port `Telemetry` for the executor."""

    clock: Clock
    quiet: bool
    """The answer is JSON, at the end."""
    actions: list[dict[str, object]] = field(default_factory=list)
    said: set[str] = field(default_factory=set)

    def say(self, line: str) -> None:
        """Print a line with the time."""
        if not self.quiet:
            click.echo(f"{self.clock.now():%H:%M:%S}  {line}")

    def once(self, line: str) -> None:
        """Print a line unless it was printed before."""
        if line not in self.said:
            self.said.add(line)
            self.say(line)

    def log(self, message: str, **facts: object) -> None:
        """Print an action that was carried out, with its reason."""
        self.actions.append({key: facts[key] for key in ("action", "target", "because")})
        gone = " (was gone already)" if message == "was gone already" else ""
        self.say(f"{facts['action']} {facts['target']}{gone}: {facts['because']}")

    def warn(self, message: str, **facts: object) -> None:
        """Print why an action was not done; the next round decides anew."""
        self.once(f"{message}: {facts['action']} {facts['target']}: {facts['because']}")

    def count(self, metric: Metric, value: float = 1) -> None:
        """Count nothing."""


class NoNodeGroups:
    """The node groups of a drain without AWS rights: its plans hold no action on them."""

    def grow(self, group: NodeGroup, add: int, zone: str | None, token: str) -> int:  # noqa: ARG002 - as the port has it
        """Refuse."""
        raise MissingRights("a drain by hand grows no node group")

    def complete_lifecycle(self, group: str, hook: str, token: str | None, instance: str) -> None:  # noqa: ARG002 - as the port has it
        """Refuse."""
        raise MissingRights("a drain by hand completes no lifecycle hook")

    def terminate(self, instance: str) -> None:  # noqa: ARG002 - as the port has it
        """Refuse."""
        raise MissingRights("a drain by hand terminates no instance")


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeDrain:
    """Drains nodes of one cluster."""

    api: ClusterApi
    clock: Clock
    progress: Progress

    def run(self, request: DrainRequest) -> tuple[End, DrainPlan]:
        """Observe, plan and act until nothing is left to wait for; return how it ended.

        Raises:
            MissingRights: the user may not do what is needed.
            Temporary: a node could not be cordoned.
        """
        self.cordon(request.nodes, unschedulable=True)
        latest = plan_nodes(self.api.observe(), request, self.clock.now())
        total = len(latest.left)
        while True:
            if latest.over:
                return "blocked" if latest.blocked else "drained", latest
            self.progress.once(f"{len(latest.left)} of {total} pods are left")
            outcomes = self._carry_out(latest.plan)
            for words in waits(latest):
                self.progress.once(f"waits: {words}")
            if latest.stuck and not request.allow_pending:
                self.progress.once(STUCK)
            if request.until is not None and self.clock.now() >= request.until:
                return "timed out", latest
            seen = self._next(max(PAUSE_SECONDS, requested_pause(outcomes)), request.until)
            if seen is None:
                return "timed out", latest
            latest = plan_nodes(seen, request, self.clock.now())
            if any(n.name in request.nodes and not n.unschedulable for n in seen.nodes):
                return "called off", latest

    def _next(self, pause: float, until: datetime | None) -> Observation | None:
        """Return the next observation; None if the time is over before the cluster answers."""
        while True:
            self.clock.sleep(pause)
            try:
                return self.api.observe()
            except Temporary as error:
                self.progress.once(f"waits: the cluster does not answer: {error}")
                if until is not None and self.clock.now() >= until:
                    return None

    def undo(self, nodes: frozenset[str]) -> None:
        """Uncordon nodes, and undo the releases of drains by hand.

        Raises:
            MissingRights: the user may not do that.
            Temporary: somebody else wrote first, again and again.
        """
        self.cordon(nodes, unschedulable=False)
        for _ in range(TRIES):
            plan = plan_undo(self.api.observe(), nodes, self.clock.now())
            if not plan.steps:
                return
            self._carry_out(plan)
            self.clock.sleep(PAUSE_SECONDS)
        raise Temporary("not all releases could be undone: run the command again")

    def cordon(self, names: frozenset[str], *, unschedulable: bool) -> None:
        """Cordon or uncordon nodes; a node that an interruption holds is not uncordoned."""
        for _ in range(TRIES):
            pending = [
                node
                for node in self.api.nodes()
                if node.name in names and node.unschedulable is not unschedulable
                if unschedulable or not self._held(node)
            ]
            if not pending:
                return
            for node in pending:
                with suppress(Conflict):
                    self.api.mark_unschedulable(node, unschedulable=unschedulable)
                    verb = "cordon" if unschedulable else "uncordon"
                    because = "it is drained" if unschedulable else "the drain is called off"
                    target = f"Node {node.name}"
                    self.progress.log("acted", action=verb, target=target, because=because)
        raise Temporary("others change the nodes all the time: run the command again")

    def _held(self, node: Node) -> bool:
        if node.interruption is None:
            return False
        kind = node.interruption.kind
        self.progress.once(f"Node {node.name} stays cordoned: a deployed Plimsoll recorded {kind}")
        return True

    def _carry_out(self, plan: Plan) -> Sequence[Outcome]:
        writers = Writers(cluster=self.api, capacity=NoNodeGroups())
        executor = Executor(writers=writers, workers=SerialWorkers(), telemetry=self.progress)
        outcomes = executor.carry_out(plan, between=lambda: None)
        for outcome in outcomes:
            if isinstance(outcome.error, MissingRights):
                raise outcome.error
        return outcomes


@click.command(epilog=EXAMPLES, short_help="Drain nodes by hand, replacements first.")
@click.argument("nodes", nargs=-1, metavar="[NODE]...")
@click.option("--selector", "-l", metavar="LABELS", help="Drain the nodes with these labels.")
@click.option("--context", metavar="NAME", help="Context of the kubeconfig. [default: current]")
@click.option(
    "--kubeconfig",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="[default: $KUBECONFIG, else ~/.kube/config]",
)
@click.option("--dry-run", is_flag=True, help="Print what would be done now, and write nothing.")
@click.option(
    "--timeout", default="0s", metavar="DURATION", help="Give up after 90s, 10m, … [default: never]"
)
@click.option(
    "--overrule-budgets",
    is_flag=True,
    help="With --timeout: evict every pod in time to stop before it, whatever its budgets say.",
)
@click.option(
    "--allow-pending",
    is_flag=True,
    help="Release pods though no node has headroom: for clusters whose autoscaler adds nodes for "
    "Pending pods.",
)
@click.option("--force", is_flag=True, help="Evict bare pods too, which nobody makes anew.")
@click.option(
    "--grace-period",
    type=click.IntRange(min=-1),
    default=-1,
    metavar="SECONDS",
    help="Instead of each pod's own grace period; -1 keeps that.",
)
@click.option(
    "--ignore-daemonsets", is_flag=True, expose_value=False, help="Implied; as in `kubectl drain`."
)
@click.option(
    "--delete-emptydir-data",
    is_flag=True,
    expose_value=False,
    help="Implied; as in `kubectl drain`.",
)
@click.option("--undo", is_flag=True, help="Uncordon the nodes and undo releases that stand.")
@json_option
@click.pass_context
def drain(  # noqa: PLR0913, PLR0917 - the options of the command
    ctx: click.Context,
    nodes: tuple[str, ...],
    selector: str | None,
    context: str | None,
    kubeconfig: Path | None,
    dry_run: bool,  # noqa: FBT001 - click hands it over by name
    timeout: str,
    overrule_budgets: bool,  # noqa: FBT001 - click hands it over by name
    allow_pending: bool,  # noqa: FBT001 - click hands it over by name
    force: bool,  # noqa: FBT001 - click hands it over by name
    grace_period: int,
    undo: bool,  # noqa: FBT001 - click hands it over by name
    as_json: bool,  # noqa: FBT001 - click hands it over by name
) -> None:
    """Drain nodes with a kubeconfig and nothing else, replacements first.

    Cordons the nodes. Then every Ready pod of a Deployment is released: its Deployment makes a
    replacement, and the pod serves until that is available. So a single replica, or a budget that
    allows no disruption, neither blocks the drain nor costs a second at zero. Pods of StatefulSets
    leave one at a time when there is headroom for them. Jobs are evicted. Pods of DaemonSets stay,
    data in emptyDir volumes is lost. PodDisruptionBudgets are kept unless --overrule-budgets is given.

    Ctrl-C leaves released pods, which serve on: run the command again, or undo it with --undo.
    It takes no Lease, so it keeps no deployed Plimsoll from an interruption. Every write has a
    precondition: two drains, or one beside a deployed Plimsoll, do no harm.
    """
    environment = environment_of(ctx)
    if bool(nodes) is (selector is not None):
        raise click.UsageError("name the nodes, or choose them with --selector")
    if grace_period == 0:
        raise BadInput("--grace-period 0 would delete pods that still run; give 1 or more")
    limit = parse_duration(timeout)
    if overrule_budgets and not limit:
        raise click.UsageError("--overrule-budgets needs --timeout: it says when pods must be gone")
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
    progress = Progress(clock=environment.clock, quiet=as_json)
    work = NodeDrain(api=api, clock=environment.clock, progress=progress)
    left: DrainPlan | None = None
    end: End = "interrupted"
    try:
        if dry_run:
            end, left = "dry run", _rehearse(seen, request, progress, undo=undo)
        elif undo:
            work.undo(request.nodes)
            end = "undone"
        else:
            end, left = work.run(request)
    except KeyboardInterrupt:
        progress.say("released pods serve on: run the command again, or undo it with --undo")
    if as_json:
        print_json(_as_json(cluster, request, environment, end, progress, left))
    if end == "interrupted":
        raise KeyboardInterrupt
    _conclude(end, request, left, progress)
    if end not in {"drained", "undone", "dry run"} or (end == "dry run" and left and left.blocked):
        ctx.exit(1)


def waits(plan: DrainPlan) -> Iterator[str]:
    """Yield in words what a drain waits for."""
    for words in plan.plan.waiting.values():
        yield from words
    for pod in plan.left:
        if pod.deleting is not None:
            yield f"Pod {pod} is stopping"


def parse_labels(text: str) -> Selector:
    """Read a label selector as kubectl takes it: `a=b,c!=d,e in (x,y),!f`.

    Raises:
        BadInput: it is none.
    """
    requirements = []
    for term in re.split(r",(?![^()]*\))", text):
        found = _TERM.fullmatch(term)
        if found is None or (found["absent"] and (found["sign"] or found["set"])):
            raise BadInput(f"--selector: {term!r} is no label selector; write for example app=web")
        values: tuple[str, ...] = ()
        if found["sign"]:
            operator, values = ("NotIn" if found["sign"] == "!=" else "In"), (found["value"],)
        elif found["set"]:
            operator = "In" if found["set"] == "in" else "NotIn"
            values = tuple(value.strip() for value in found["values"].split(","))
        else:
            operator = "DoesNotExist" if found["absent"] else "Exists"
        requirements.append(Requirement(key=found["key"], operator=operator, values=values))
    return Selector(requirements=tuple(requirements))


def _chosen(seen: Observation, names: Sequence[str], selector: str | None) -> frozenset[str]:
    if selector is not None:
        chosen = parse_labels(selector)
        found = frozenset(node.name for node in seen.nodes if matches(chosen, node.labels))
        if not found:
            raise BadInput(f"--selector {selector}: no node has these labels")
        return found
    unknown = [name for name in names if name not in seen.node]
    if unknown:
        raise BadInput(f"the cluster has no node {', '.join(unknown)}: see `kubectl get nodes`")
    return frozenset(names)


def _rehearse(
    seen: Observation, request: DrainRequest, progress: Progress, *, undo: bool
) -> DrainPlan:
    for name in sorted(request.nodes):
        if seen.node[name].unschedulable is undo:
            verb = "uncordon" if undo else "cordon"
            progress.log(
                "would", action=f"would {verb}", target=f"Node {name}", because="asked for"
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


def _conclude(end: End, request: DrainRequest, left: DrainPlan | None, progress: Progress) -> None:
    for name, why in ({} if left is None else left.blocked).items():
        progress.say(f"Pod {name} stays: {why}")
    if left is not None and end in {"timed out", "called off"}:
        for pod in left.left:
            progress.say(f"left on {pod.node}: Pod {pod}")
        for words in waits(left):
            progress.say(f"blocks: {words}")
    progress.say(f"{', '.join(sorted(request.nodes))}: {end}")


def _as_json(  # noqa: PLR0913, PLR0917 - the parts of the answer
    cluster: str,
    request: DrainRequest,
    environment: Environment,
    end: End,
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
        "blocked": {} if left is None else left.blocked,
    }
