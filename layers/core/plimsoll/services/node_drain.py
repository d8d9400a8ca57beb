"""The loop of a drain that somebody asked for: observe, plan, act, and say what is waited for.

`plimsoll drain` runs it, and so does the agent when an instruction consolidates a node.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from typing import Final, Literal, Protocol

from plimsoll.domain.actions import Plan
from plimsoll.domain.drain import DrainPlan, DrainRequest, plan_nodes, plan_undo
from plimsoll.domain.errors import Conflict, MissingRights, Temporary
from plimsoll.domain.interruptions import LifecycleHook
from plimsoll.domain.kubernetes import Node
from plimsoll.domain.node_groups import NodeGroup
from plimsoll.domain.observation import Observation
from plimsoll.services.executor import ActionResult, Executor, Writers, requested_pause
from plimsoll.services.ports import Clock, ClusterApi, Telemetry, Workers

PAUSE_SECONDS: Final = 1.0
"""Between two observations."""
MOST_PAUSE_SECONDS: Final = 10.0
"""However long the API asks to be left alone: whoever may call the drain off is heard by then."""
TRIES: Final = 10
"""How often a change is tried again that somebody else's write came before."""
STUCK: Final = (
    "nothing can be done until that changes; --allow-pending releases pods without headroom, where "
    "an autoscaler adds nodes for Pending pods"
)

type End = Literal["drained", "blocked", "timed out", "called off"]


class Progress(Telemetry, Protocol):
    """Hears what a drain does, as telemetry of its actions, and what it waits for."""

    def once(self, line: str) -> None:
        """Hear something that may be said again and again."""


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
    workers: Workers
    progress: Progress
    check: Callable[[Observation], None] = lambda _: None
    """Asked before anything is done by an observation. Nothing is done while it raises Temporary; any other error ends
    the drain."""

    def run(self, request: DrainRequest) -> tuple[End, DrainPlan]:
        """Cordon; then observe, check, plan and act until nothing is left to wait for; return how it ended.

        Raises:
            MissingRights: the user may not do what is needed.
            Temporary: a node could not be cordoned, or the first observation or check failed.
            Permanent: the check forbids to go on.
        """
        # All nodes are cordoned before any pod leaves: a replacement could land on the next node to drain.
        self.cordon(request.nodes, unschedulable=True)
        seen = self.api.observe()
        self.check(seen)
        latest = plan_nodes(seen, request, self.clock.now())
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
            asked = min(MOST_PAUSE_SECONDS, requested_pause(outcomes))
            found = self._next(max(PAUSE_SECONDS, asked), request.until)
            if found is None:
                return "timed out", latest
            latest = plan_nodes(found, request, self.clock.now())
            # Uncordoning a node calls the drain off.
            if any(n.name in request.nodes and not n.unschedulable for n in found.nodes):
                return "called off", latest

    def _next(self, pause: float, until: datetime | None) -> Observation | None:
        """Return the next observation; None if the time is over before the cluster answers."""
        while True:
            self.clock.sleep(pause)
            try:
                seen = self.api.observe()
                self.check(seen)
            except Temporary as error:
                self.progress.once(f"waits: the cluster does not answer: {error}")
                if until is not None and self.clock.now() >= until:
                    return None
            else:
                return seen

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
        """Cordon or uncordon nodes; a node that an interruption holds is not uncordoned.

        Raises:
            Temporary: somebody else wrote to a node first, again and again.
        """
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

    def _carry_out(self, plan: Plan) -> Sequence[ActionResult]:
        writers = Writers(cluster=self.api, capacity=NoNodeGroups())
        executor = Executor(writers=writers, workers=self.workers, telemetry=self.progress)
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
