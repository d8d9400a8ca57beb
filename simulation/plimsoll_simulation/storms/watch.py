"""Judges every write of the responder by the state of the cluster before it.

The API of the fake cluster is replaced by one that observes the cluster, then lets the write
happen. It observes the cluster itself, not what the responder last read of it.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Final, override

from plimsoll.adapters.kubernetes import KubernetesCluster
from plimsoll.adapters.kubernetes.transport import Response
from plimsoll.adapters.workers import SerialWorkers
from plimsoll.domain.kubernetes import LEASE
from plimsoll.domain.observation import Observation
from plimsoll_simulation.fake_cluster.api import FakeApi
from plimsoll_simulation.fake_cluster.conditions import controller_of
from plimsoll_simulation.fake_cluster.subresources import Request
from plimsoll_simulation.fake_cluster.transport import FakeTransport
from plimsoll_simulation.rigs.simulated.rig import Simulation
from plimsoll_simulation.rigs.simulated.time import Invocation
from plimsoll_simulation.storms.cordons import Cordons
from plimsoll_simulation.storms.model import CLUSTER
from plimsoll_simulation.storms.notice_delivery import NoticeDelivery, since
from plimsoll_simulation.storms.rules import Wrong, judged

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
        two_leases: bool = False,
    ) -> None:
        self.simulation = simulation
        self.delivery = delivery
        self.rig_cluster = simulation.rig_clusters[CLUSTER]
        self.violations: list[Violation] = []
        transport = FakeTransport(self.rig_cluster.cluster, simulation.clock, user=WATCHER)
        self._observer = KubernetesCluster(
            transport, CLUSTER, simulation.clock, workers=SerialWorkers()
        )
        self._desired: dict[str, int] = {}
        self.writes = 0
        """How often the responder wrote to something, but for its Lease and Events."""
        self.cordons = Cordons()
        self.rig_cluster.cluster.api = _WatchedApi(self, responder, two_leases=two_leases)

    def note(self, rule: str, what: str) -> None:
        """Note a violation of now, each once."""
        zero = self.simulation.measurement.started
        seconds = since(zero, self.simulation.clock.now()).total_seconds()
        violation = Violation(rule=rule, seconds=round(seconds, 3), what=what)
        if violation not in self.violations:
            self.violations.append(violation)

    def observe(self) -> Observation:
        """Return the state of the cluster just now, and what the responder remembers of its pods."""
        seen = self._observer.observe()
        times = self.simulation.responder.times(CLUSTER, seen.of_workload.keys())
        return replace(seen, times=times) if times else seen

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
        return judged(write, self.rig_cluster, self.delivery, self.observe)


class _WatchedApi(FakeApi):
    """An API server that has the responder's writes judged before they happen.

    With two Leases, each stands for the one of the cluster to every other invocation that asks: so two
    executors at once believe that they alone hold it, each until it gives it back or lets it run out.
    """

    def __init__(self, watch: Watch, user: str, *, two_leases: bool) -> None:
        super().__init__(watch.rig_cluster.cluster.store)
        self._watch = watch
        self._user = user
        self._leases = 2 if two_leases else 1
        self._lease_of: dict[Invocation | None, int] = {}

    @override
    def answer(self, request: Request) -> Response:
        ours, target = request.user == self._user, request.target
        if ours and target.resource.plural == "leases":
            return super().answer(self._about_its_lease(request))
        if not ours or not target.name or request.method == "GET":
            answer = super().answer(request)
            self._watch.cordons.note(request, ours=ours)
            return answer
        wrong = self._watch.judge(request)
        answer = super().answer(request)  # what is refused does no harm
        for violation in wrong:
            self._watch.note(*violation)
        self._watch.cordons.note(request, ours=ours)
        self._watch.writes += 1
        return answer

    def _about_its_lease(self, request: Request) -> Request:
        """Return a request about the Lease that stands for the cluster's to the invocation that asks."""
        running = self._watch.simulation.clock.running
        which = self._lease_of.setdefault(running, len(self._lease_of) % self._leases)
        if which == 0:
            return request
        name = f"{LEASE}-{which + 1}"
        if request.method == "POST":
            metadata = {**request.body["metadata"], "name": name}
            return replace(request, body={**request.body, "metadata": metadata})
        return replace(request, target=replace(request.target, name=name))
