"""Judges every write of the responder by the state of the cluster before it.

The API of the fake cluster is replaced by one that observes the cluster, then lets the write
happen. It observes the cluster itself, not what the responder last read of it.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Final, override

from plimsoll.adapters.kubernetes import KubernetesCluster
from plimsoll.adapters.kubernetes.transport import Response, Transport
from plimsoll.adapters.workers import SerialWorkers
from plimsoll.domain.kubernetes import LEASE, Node, Pod
from plimsoll.domain.observation import Observation
from plimsoll.services.ports import Clock
from plimsoll_simulation.fake_cluster.api import FakeApi
from plimsoll_simulation.fake_cluster.conditions import controller_of
from plimsoll_simulation.fake_cluster.store import Store
from plimsoll_simulation.fake_cluster.subresources import Request
from plimsoll_simulation.fake_cluster.transport import FakeTransport
from plimsoll_simulation.rigs.simulated.rig import Simulation
from plimsoll_simulation.rigs.simulated.time import Invocation
from plimsoll_simulation.storms.cordons import Cordons
from plimsoll_simulation.storms.model import CLUSTER
from plimsoll_simulation.storms.notice_delivery import NoticeDelivery, since
from plimsoll_simulation.storms.rules import Situation, Wrong, judged

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
        self._observer = _reader(transport, simulation.clock)
        self._desired: dict[str, int] = {}
        self._written: list[tuple[datetime, Invocation | None, str, str]] = []
        """What the responder wrote to: when, by which invocation, the plural of its kind, and its uid."""
        self._two_leases = two_leases
        self.cordons = Cordons()
        self.rig_cluster.cluster.api = _WatchedApi(self, responder, two_leases=two_leases)

    def note(self, rule: str, what: str) -> None:
        """Note a violation of now, each once."""
        zero = self.simulation.measurement.started
        seconds = since(zero, self.simulation.clock.now()).total_seconds()
        violation = Violation(rule=rule, seconds=round(seconds, 3), what=what)
        if violation not in self.violations:
            self.violations.append(violation)

    @property
    def writes(self) -> int:
        """How often the responder wrote to something, but for its Lease and Events."""
        return len(self._written)

    def observe(self) -> Observation:
        """Return the state of the cluster just now, and what the responder remembers of its pods."""
        seen = self._observer.observe()
        times = self.simulation.responder.times(CLUSTER, seen.of_workload.keys())
        return replace(seen, times=times) if times else seen

    def _earlier(self, age: timedelta) -> Iterator[Observation]:
        """Yield what the cluster was within some time, the latest first, with what the responder did itself since."""
        clock, now = self.simulation.clock, self.observe()
        since, own = clock.now() - age, self._own(clock.now() - age)
        past: KubernetesCluster | None = None
        for store in self.rig_cluster.cluster.store.earlier(since):
            past = past or _reader(_Storage(store, clock.now()), clock)
            then = past.observe()
            yield replace(
                then,
                nodes=[*_with_own(then.nodes, now.nodes, own)],
                pods=[*_with_own(then.pods, now.pods, own)],
            )

    def _own(self, since: datetime) -> frozenset[str]:
        """Return the uids of what the running executor wrote to.

        The Lease lets it know of all pods that were told to go. Where two may hold one, each knows its own.
        """
        return frozenset(
            uid
            for at, by, plural, uid in self._written
            if at >= since
            and (by is self.simulation.clock.running or (plural == "pods" and not self._two_leases))
        )

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
            earlier=self._earlier,
        )
        return judged(write, situation)

    def wrote(self, write: Request, uid: str) -> None:
        """Take note of a write of the responder that was done."""
        clock, plural = self.simulation.clock, write.target.resource.plural
        self._written.append((clock.now(), clock.running, plural, uid))


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
        uid = request.found(self.store)["metadata"]["uid"]
        answer = super().answer(request)  # what is refused does no harm
        for violation in wrong:
            self._watch.note(*violation)
        self._watch.cordons.note(request, ours=ours)
        self._watch.wrote(request, uid)
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


def _with_own[T: (Node, Pod)](
    then: Sequence[T], now: Sequence[T], own: Collection[str]
) -> Iterator[T]:
    """Yield objects as they were, those that an executor wrote to since as they are."""
    written = {each.uid: each for each in now if each.uid in own}
    for each in then:
        if each.uid not in own:
            yield each
        elif (as_it_is := written.get(each.uid)) is not None:
            yield as_it_is


@dataclass(frozen=True, slots=True)
class _Storage:
    """Implements `plimsoll.adapters.kubernetes.transport.Transport`, to read what a store keeps."""

    store: Store
    now: datetime

    def call(
        self,
        method: str,
        path: str,
        *,
        query: Mapping[str, str] | None = None,
        body: object = None,
        content_type: str | None = None,  # noqa: ARG002 - nothing is written
    ) -> Response:
        """Answer a request."""
        return FakeApi(self.store).handle(method, path, query, body, now=self.now)


def _reader(transport: Transport, clock: Clock) -> KubernetesCluster:
    return KubernetesCluster(transport, CLUSTER, clock, workers=SerialWorkers())
