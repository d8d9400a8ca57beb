"""Judges every write of the responder by the state of the cluster just before it.

The API of the hollow cluster is replaced by one that observes the cluster, then lets the write
happen. It observes the cluster itself, not what the responder last read of it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, override

from plimsoll.adapters.kubernetes import KubernetesCluster
from plimsoll.adapters.kubernetes.transport import Response
from plimsoll.adapters.workers import SerialWorkers
from plimsoll.domain.observation import Observation
from plimsoll_testbed.model.hollow.api import HollowApi
from plimsoll_testbed.model.hollow.conditions import controller_of
from plimsoll_testbed.model.hollow.subresources import Request
from plimsoll_testbed.model.hollow.transport import HollowTransport
from plimsoll_testbed.rigs.simulated.rig import Simulation
from plimsoll_testbed.rigs.simulated.time import Invocation
from plimsoll_testbed.storms.model import CLUSTER
from plimsoll_testbed.storms.notice_delivery import NoticeDelivery, since
from plimsoll_testbed.storms.rules import Situation, Wrong, judged

WATCHER: Final = "storms"


@dataclass(frozen=True, slots=True, kw_only=True)
class Violation:
    """A rule that was broken."""

    rule: str
    """Its name, short and the same in every storm."""
    seconds: float
    """Since time 0."""
    what: str


class Watch:
    """Watches the one cluster of a simulation from time 0 to its end."""

    def __init__(
        self,
        simulation: Simulation,
        responder: str,
        delivery: NoticeDelivery,
        *,
        lease_for_all: bool = False,
    ) -> None:
        self.simulation = simulation
        self.delivery = delivery
        self.rig_cluster = simulation.rig_clusters[CLUSTER]
        self.violations: list[Violation] = []
        self._observer = KubernetesCluster(
            HollowTransport(self.rig_cluster.cluster, simulation.clock, user=WATCHER),
            CLUSTER,
            simulation.clock,
            workers=SerialWorkers(),
        )
        self._desired: dict[str, int] = {}
        self.rig_cluster.cluster.api = _WatchedApi(self, responder, lease_for_all=lease_for_all)

    def note(self, rule: str, what: str) -> None:
        """Note a violation of now, each once."""
        zero = self.simulation.measurement.started
        seconds = since(zero, self.simulation.clock.now()).total_seconds()
        violation = Violation(rule=rule, seconds=round(seconds, 3), what=what)
        if violation not in self.violations:
            self.violations.append(violation)

    def observe(self) -> Observation:
        """Return the state of the cluster just now."""
        return self._observer.observe()

    def called(self, invocation: Invocation) -> None:
        """Judge a call to AWS, right after it."""
        operation = invocation.last_call
        for name, group in self.rig_cluster.fleet.groups.items():
            desired = group.desired + group.lowered_by_owner
            least = group.spec.size if group.spec.renew else self._desired.get(name, desired)
            if desired < least:
                self.note("desired-lowered", f"{name} by {operation}")
            self._desired[name] = desired
        if operation.startswith("autoscaling:"):
            self._judge_terminations(operation)

    def _judge_terminations(self, operation: str) -> None:
        """Plimsoll terminates no instance before its node is empty."""
        now = self.simulation.clock.now()
        for machine in self.rig_cluster.fleet.alive():
            if machine.ends is None or machine.ends > now:
                continue
            row = self.simulation.measurement.nodes[machine.id]
            pods = [
                pod["metadata"]["name"]
                for pod in self.rig_cluster.cluster.store.all("pods")
                if pod["spec"].get("nodeName") == machine.node
                and pod.get("status", {}).get("phase") == "Running"
                and (controller_of(pod) or {}).get("kind") != "DaemonSet"
            ]
            if pods and row.deadline != machine.ends:
                self.note("ended-not-empty", f"{operation} of {machine.node} with {pods}")

    def judge(self, write: Request) -> list[Wrong]:
        """Return what is wrong with a write of the responder, before it happens."""
        if self.simulation.measurement.started is None:
            return []
        situation = Situation(
            rig_cluster=self.rig_cluster,
            measurement=self.simulation.measurement,
            delivery=self.delivery,
            observe=self.observe,
        )
        return judged(write, situation)


class _WatchedApi(HollowApi):
    """An API server that has the responder's writes judged before they happen."""

    def __init__(self, watch: Watch, user: str, *, lease_for_all: bool) -> None:
        super().__init__(watch.rig_cluster.cluster.store)
        self._watch = watch
        self._user = user
        self._lease_for_all = lease_for_all

    @override
    def answer(self, request: Request) -> Response:
        ours, target = request.user == self._user, request.target
        about_lease = target.resource.plural == "leases"
        if ours and about_lease and self._lease_for_all:
            return _lease(request)
        if not ours or about_lease or not target.name or request.method == "GET":
            return super().answer(request)
        wrong = self._watch.judge(request)
        answer = super().answer(request)  # what is refused does no harm
        for violation in wrong:
            self._watch.note(*violation)
        return answer


def _lease(request: Request) -> Response:
    """Let everybody who asks hold the lease: several executors at once."""
    if request.method == "GET":
        target = request.target
        metadata = {"name": target.name, "namespace": target.namespace, "resourceVersion": "1"}
        return Response(status=200, body={"metadata": metadata, "spec": {}})
    return Response(status=201 if request.method == "POST" else 200, body=request.body)
