"""A target group of a load balancer, the controller that keeps it, and a client behind it.

The controller registers and deregisters targets as the AWS Load Balancer Controller does: of nodes all
that are Ready, but for those with a label or taint that keeps load balancers away; of pods those whose
containers are ready and that were not told to go. It sets the readiness gates of pods.
The load balancer sends requests to healthy targets in turn. A target becomes healthy some time after it
was registered; it gets requests for some time after it was deregistered; one that no longer answers gets
them until health checks have found that. Where all that were healthy once are not, all of these get them.

A request is lost if nobody takes it, or if what takes it ends before it is answered.

Sources: https://github.com/kubernetes-sigs/aws-load-balancer-controller/blob/main/pkg/backend,
https://docs.aws.amazon.com/elasticloadbalancing/latest/application/target-group-health.html (fail-open), and
the times measured in https://github.com/kubernetes-sigs/aws-load-balancer-controller/issues/2366.
Left out: zones, weights, slow start, stickiness, and connections that are kept open.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Final, Literal

from plimsoll_simulation.fake_cluster.cluster import FakeCluster
from plimsoll_simulation.fake_cluster.conditions import is_deleting, is_ready, is_true
from plimsoll_simulation.fake_cluster.edits import Json, look
from plimsoll_simulation.fake_cluster.state import PodStopped

GATE: Final = "target-health.elbv2.k8s.aws/"
LABELS: Final = {
    "node-role.kubernetes.io/master",
    "node.kubernetes.io/exclude-from-external-load-balancers",
    "alpha.service-controller.kubernetes.io/exclude-balancer",
}
TAINTS: Final = {"ToBeDeletedByClusterAutoscaler", "karpenter.sh/disrupted"}
STEP: Final = timedelta(seconds=0.5)
"""Between two requests, and between two looks of the controller."""
_STRATEGIC: Final = "application/strategic-merge-patch+json"

type Mode = Literal["instance", "ip"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """A request of the client, and who took it."""

    at: datetime
    node: str | None = None
    """The node that it went to, in instance mode."""
    pod: str | None = None
    """The UID of the pod that answers it; None: nobody does."""


@dataclass(slots=True, kw_only=True)
class _Target:
    registered: datetime
    left: datetime | None = None
    """When it was deregistered."""
    silent: datetime | None = None
    """Since when it does not answer health checks."""


@dataclass(eq=False, kw_only=True)
class TargetGroup:
    """The target group of one Service in a fake cluster. It moves as time passes."""

    cluster: FakeCluster
    mode: Mode
    namespace: str
    service: str
    healthy_after: timedelta = timedelta(seconds=20)
    """From registered to healthy: two health checks, ten seconds apart."""
    left_after: timedelta = timedelta(seconds=10)
    """From deregistered to the last new request."""
    silent_after: timedelta = timedelta(seconds=20)
    """From the first health check that is not answered to unhealthy."""
    answer: timedelta = timedelta(seconds=2)
    """What a request takes."""
    wrote: Callable[[], None] = lambda: None
    """Called when the controller has changed a pod."""
    sent: list[Request] = field(default_factory=list)
    _targets: dict[str, _Target] = field(default_factory=dict)
    """By the name of a node, or the UID of a pod."""
    _ended: dict[str, datetime] = field(default_factory=dict)
    """When a node's instance went, or a pod stopped running; by the same names."""

    def __post_init__(self) -> None:
        """Hear when pods stop."""
        self.cluster.on_pod_stopped(self._stopped)

    def step(self, now: datetime) -> datetime:
        """Let the controller look, and the client send a request."""
        for name in self.cluster.state.vanished:
            self._ended.setdefault(name, now)
        there = self._eligible()
        for name in there:
            target = self._targets.get(name)
            if target is None or target.left is not None:
                self._targets[name] = _Target(registered=now)
        for name, target in self._targets.items():
            if name not in there and target.left is None:
                target.left = now
            if name in self._ended and target.silent is None:
                target.silent = now
        if self.cluster.api_up:
            self._open_gates(now)
        self._send(now)
        return now + STEP

    def begin(self, now: datetime) -> None:
        """Take what is there for healthy, and forget what was sent."""
        self._targets = {
            name: _Target(registered=now - self.healthy_after) for name in self._eligible()
        }
        self.sent.clear()

    def lost(self) -> Sequence[Request]:
        """Return the requests that nobody answered."""
        return [request for request in self.sent if self._is_lost(request)]

    def _is_lost(self, request: Request) -> bool:
        ends = (self._ended.get(name) for name in (request.node, request.pod) if name)
        return request.pod is None or any(
            end is not None and end < request.at + self.answer for end in ends
        )

    def _send(self, now: datetime) -> None:
        routed = [*self._routed(now)]
        target = routed[len(self.sent) % len(routed)] if routed else None
        if self.mode == "ip":
            self.sent.append(Request(at=now, pod=target))
            return
        pods = [*self._serving(target)] if target and target not in self._ended else []
        pod = pods[len(self.sent) % len(pods)] if pods else None
        self.sent.append(Request(at=now, node=target, pod=pod))

    def _routed(self, now: datetime) -> Sequence[str]:
        """Return the targets that the load balancer chooses from now."""
        open_ = {
            name: target
            for name, target in self._targets.items()
            if target.left is None or now < target.left + self.left_after
        }
        known = {n: t for n, t in open_.items() if t.registered + self.healthy_after <= now}
        healthy = [
            name
            for name, target in known.items()
            if target.silent is None or now < target.silent + self.silent_after
        ]
        return healthy or [*known]

    def _serving(self, node: str) -> Iterator[str]:
        """Yield the pods that a node hands requests on to."""
        local = look(self._spec(), "externalTrafficPolicy") == "Local"
        for pod in self._pods():
            here = not local or look(pod, "spec", "nodeName") == node
            if here and is_ready(pod) and not is_deleting(pod):
                yield pod["metadata"]["uid"]

    def _eligible(self) -> frozenset[str]:
        if self.mode == "ip":
            pods = self._pods()
            return frozenset(p["metadata"]["uid"] for p in pods if _is_target(p))
        nodes = self.cluster.store.all("nodes")
        return frozenset(n["metadata"]["name"] for n in nodes if _takes_traffic(n))

    def _open_gates(self, now: datetime) -> None:
        for pod in self._pods() if self.mode == "ip" else ():
            target = self._targets.get(pod["metadata"]["uid"])
            healthy = target is not None and target.registered + self.healthy_after <= now
            for gate in look(pod, "spec", "readinessGates", default=()):
                kind = gate["conditionType"]
                if kind.startswith(GATE) and healthy and not is_true(pod, kind):
                    self._set(pod, kind, now)

    def _set(self, pod: Json, kind: str, now: datetime) -> None:
        meta = pod["metadata"]
        path = f"/api/v1/namespaces/{meta['namespace']}/pods/{meta['name']}/status"
        body = {"status": {"conditions": [{"type": kind, "status": "True"}]}}
        self.cluster.handle("PATCH", path, None, body, _STRATEGIC, now=now, user="elb")
        self.wrote()

    def _pods(self) -> Sequence[Json]:
        wanted: Mapping[str, str] = self._spec().get("selector", {})
        return [
            pod
            for pod in self.cluster.store.all("pods", self.namespace)
            if wanted and wanted.items() <= pod["metadata"].get("labels", {}).items()
        ]

    def _spec(self) -> Json:
        service = self.cluster.store.get("services", self.namespace, self.service)
        return {} if service is None else dict(service["spec"])

    def _stopped(self, stopped: PodStopped) -> None:
        self._ended.setdefault(stopped.pod["metadata"]["uid"], stopped.at)


def _is_target(pod: Json) -> bool:
    return is_true(pod, "ContainersReady") and not is_deleting(pod)


def _takes_traffic(node: Json) -> bool:
    taints = {taint["key"] for taint in node["spec"].get("taints", ())}
    labels = node["metadata"].get("labels", {}).keys()
    return is_ready(node) and not (taints & TAINTS or labels & LABELS)
