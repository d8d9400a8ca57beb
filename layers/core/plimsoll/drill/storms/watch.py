"""Looks over the responder's shoulder: every write it makes is judged by what was true just before.

The API of the hollow cluster is put behind one that first looks, then lets the write happen. What
is looked at is the cluster itself, not what the responder last read of it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Final, override

from plimsoll.adapters.kubernetes import KubernetesCluster
from plimsoll.adapters.workers import SerialWorkers
from plimsoll.domain.observation import Observation
from plimsoll.drill.simulated.rig import Simulation
from plimsoll.drill.simulated.stage import HollowStage
from plimsoll.drill.simulated.time import Invocation
from plimsoll.drill.storms.rules import Write, judged
from plimsoll.hollow.api import Answer, HollowApi
from plimsoll.hollow.routes import Target, target_of
from plimsoll.hollow.store import Store
from plimsoll.hollow.transport import HollowTransport

WATCHER: Final = "storms"
_FAILED: Final = 400


@dataclass(frozen=True, slots=True, kw_only=True)
class Violation:
    """Something that must not be."""

    rule: str
    """Its name, short and the same in every storm."""
    seconds: float
    """Since time 0."""
    what: str


@dataclass(slots=True)
class Findings:
    """What was found wrong in one drill, each rule and object once."""

    found: list[Violation] = field(default_factory=list)

    def add(self, rule: str, seconds: float, what: str) -> None:
        """Note a violation."""
        violation = Violation(rule=rule, seconds=round(seconds, 3), what=what)
        if violation not in self.found:
            self.found.append(violation)


class WatchedApi(HollowApi):
    """An API server that shows the responder's writes to somebody before they happen."""

    def __init__(
        self,
        store: Store,
        user: str,
        before: Callable[[Write], list[tuple[str, str]]],
        note: Callable[[str, str], None],
        *,
        lease_for_all: bool,
    ) -> None:
        super().__init__(store)
        self._user = user
        self._before = before
        self._note = note
        self._lease_for_all = lease_for_all
        self._unheard: set[str] = set()
        """Workloads whose owner set the count that a temporary change had set already."""

    @override
    def handle(
        self,
        method: str,
        path: str,
        query: Mapping[str, str] | None = None,
        body: Any = None,
        content_type: str = "application/json",
        *,
        now: datetime,
        user: str = "",
    ) -> Answer:
        target = target_of(path) if user == self._user else None
        if target is not None and target.resource.plural == "leases" and self._lease_for_all:
            return _lease(method, target, body)
        wrong: list[tuple[str, str]] = []
        # An owner who sets by chance the very count that stands there cannot be heard.
        if path not in self._unheard and target is not None and target.name and method != "GET":
            wrong = self._before(
                Write(method=method, target=target, name=target.name, body=body or {}, now=now)
            )
        revision = self.store.revision
        answer = super().handle(method, path, query, body, content_type, now=now, user=user)
        if method == "PATCH" and path.endswith("/scale") and self.store.revision == revision:
            self._unheard.add(path.removesuffix("/scale"))
        if answer.status < _FAILED:  # what was refused did no harm
            for rule, what in wrong:
                self._note(rule, what)
        return answer


def _lease(method: str, target: Target, body: Any) -> Answer:
    """Let everybody who asks hold the lease: several executors at once."""
    if method == "GET":
        metadata = {"name": target.name, "namespace": target.namespace, "resourceVersion": "1"}
        return Answer(status=200, body={"metadata": metadata, "spec": {}})
    return Answer(status=201 if method == "POST" else 200, body=body)


class Watch:
    """Watches one simulation from time 0 to its end."""

    def __init__(
        self, simulation: Simulation, responder: str, *, lease_for_all: bool = False
    ) -> None:
        self.simulation = simulation
        self.findings = Findings()
        self._eyes: dict[str, KubernetesCluster] = {}
        self._desired: dict[tuple[str, str], int] = {}
        self._ends: dict[str, datetime | None] = {}
        for name, stage in simulation.stages.items():
            self._eyes[name] = KubernetesCluster(
                HollowTransport(stage.cluster, simulation.clock, user=WATCHER),
                name,
                simulation.clock,
                workers=SerialWorkers(),
            )
            stage.cluster.api = WatchedApi(
                stage.cluster.store,
                responder,
                lambda write, stage=stage: self._judge(stage, write),  # type: ignore[misc]  # mypy cannot infer a lambda with a default
                self.note,
                lease_for_all=lease_for_all,
            )

    def note(self, rule: str, what: str) -> None:
        """Note a violation of now."""
        measurement = self.simulation.measurement
        began = measurement.started or self.simulation.clock.now()
        seconds = (self.simulation.clock.now() - began).total_seconds()
        self.findings.add(rule, seconds, what)

    def seen(self, stage: HollowStage) -> Observation:
        """Return what a look at a cluster finds just now."""
        return self._eyes[stage.name].observe()

    def called(self, invocation: Invocation) -> None:
        """Judge a call to AWS, right after it."""
        operation = invocation.last_call
        for stage in self.simulation.stages.values():
            for group in stage.fleet.groups.values():
                key = (stage.name, group.spec.name)
                if group.desired < self._desired.get(key, group.desired):
                    self.note("desired-lowered", f"{group.spec.name} by {operation}")
                self._desired[key] = group.desired
            if operation.startswith("autoscaling:"):
                self._judge_ends(stage, operation)

    def _judge_ends(self, stage: HollowStage, operation: str) -> None:
        """No instance is ended at our word before its node is empty."""
        now = self.simulation.clock.now()
        for machine in stage.fleet.alive():
            if machine.ends is None or machine.ends > now:
                continue
            row = self.simulation.measurement.nodes[machine.id]
            pods = [
                pod["metadata"]["name"]
                for pod in stage.cluster.store.all("pods")
                if pod["spec"].get("nodeName") == machine.node
                and pod.get("status", {}).get("phase") == "Running"
                and not any(
                    owner["kind"] == "DaemonSet"
                    for owner in pod["metadata"].get("ownerReferences", ())
                )
            ]
            if pods and row.deadline != machine.ends:
                self.note("ended-not-empty", f"{operation} of {machine.node} with {pods}")

    def _judge(self, stage: HollowStage, write: Write) -> list[tuple[str, str]]:
        if self.simulation.measurement.started is None:
            return []
        return judged(write, stage, self.simulation.measurement, lambda: self.seen(stage))
