"""The loop of `plimsoll drain`: observe, plan, act, and say what is done and what is waited for."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import datetime
from typing import Final, Literal

import click

from plimsoll.adapters.workers import SerialWorkers
from plimsoll.domain.errors import Conflict, MissingRights, Temporary
from plimsoll.domain.groups import NodeGroup
from plimsoll.domain.lifecycle_hooks import LifecycleHook
from plimsoll.domain.metrics import Metric
from plimsoll.domain.nodes import Node
from plimsoll.domain.observation import Observation
from plimsoll.domain.plan import Plan
from plimsoll.domain.writers import Writers
from plimsoll.services.executor import Executor, Outcome, requested_pause
from plimsoll.services.ports import Clock, ClusterApi
from plimsoll_cli.node_drain import DrainPlan, DrainRequest, plan_nodes, plan_undo

PAUSE_SECONDS: Final = 1.0
"""Between two observations."""
TRIES: Final = 10
"""How often a change is tried again that somebody else's write came before."""
STUCK: Final = (
    "nothing can be done until that changes; --allow-pending releases pods without headroom, where "
    "an autoscaler adds nodes for Pending pods"
)

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

    def count(self, metric: Metric, value: float = 1, *, cluster: str | None = None) -> None:
        """Count nothing."""


class NoNodeGroups:
    """The node groups of a drain without AWS rights: its plans hold no action on them."""

    def grow(self, group: NodeGroup, add: int, zone: str | None, token: str) -> int:  # noqa: ARG002 - as the port has it
        """Refuse."""
        raise MissingRights("a drain by hand grows no node group")

    def heartbeat(self, hook: LifecycleHook, instance: str) -> None:  # noqa: ARG002 - as the port has it
        """Refuse."""
        raise MissingRights("a drain by hand knows no lifecycle hook")

    def complete_lifecycle(self, hook: LifecycleHook, instance: str) -> None:  # noqa: ARG002 - as the port has it
        """Refuse."""
        raise MissingRights("a drain by hand completes no lifecycle hook")

    def terminate(self, instance: str, *, decrement: bool) -> None:  # noqa: ARG002 - as the port has it
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
        outcomes = executor.carry_out(plan)
        for outcome in outcomes:
            if isinstance(outcome.error, MissingRights):
                raise outcome.error
        return outcomes


def waits(plan: DrainPlan) -> Iterator[str]:
    """Yield in words what a drain waits for."""
    for words in plan.plan.waiting.values():
        yield from words
    for pod in plan.left:
        if pod.deleting is not None:
            yield f"Pod {pod} is stopping"
