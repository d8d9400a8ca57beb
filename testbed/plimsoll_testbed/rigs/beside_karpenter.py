"""The objects of a drill on a real control plane beside Karpenter itself, with Plimsoll's services or without.

The services are those that run in Lambda, in this process, over stores in memory. A notice reaches them
one second after its time and Karpenter as much later as its queue is delayed. Karpenter's KWOK provider
has no EC2 instances, so that its provider ids are shown to Plimsoll as those of EC2.
"""

from __future__ import annotations

import hashlib
import itertools
import json
import re
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Final, Unpack

from msgspec import Raw

from plimsoll.adapters.aws import Aws
from plimsoll.adapters.clock import SystemClock
from plimsoll.adapters.kubernetes import KubernetesCluster
from plimsoll.adapters.kubernetes.calls import OVERLAYS
from plimsoll.adapters.kubernetes.requests import Requests
from plimsoll.adapters.kubernetes.transport import Events, RequestParts, Response, Transport
from plimsoll.adapters.nodegroups.account import Account
from plimsoll.adapters.nodegroups.karpenter import NodePools
from plimsoll.adapters.nodegroups.kind import Access
from plimsoll.adapters.workers import ThreadWorkers
from plimsoll.domain.errors import Refused
from plimsoll.domain.interruptions import LifecycleHook
from plimsoll.domain.kubernetes import NODE_POOL, Node
from plimsoll.domain.node_groups import Instance, NodeGroup
from plimsoll.domain.notices import DRILL_SOURCE, InstanceNotice, ZonalShift
from plimsoll.domain.registry import Cluster, ClusterKind, IndexEntry, Mode
from plimsoll.domain.reports import Metric
from plimsoll.services.trusted_sources import TrustedSources
from plimsoll.services.wiring import Ports, Services, wire
from plimsoll_simulation.checkout import Checkout
from plimsoll_simulation.fake_aws.stores import (
    AmpleLimits,
    MemoryAnnouncer,
    MemoryNodeIndex,
    MemoryPools,
    MemoryRegistry,
    MemoryReports,
    MemoryResyncs,
    MemoryTimes,
)
from plimsoll_simulation.fake_cluster.conditions import is_deleting, is_ready
from plimsoll_simulation.fake_cluster.settings import Settings
from plimsoll_simulation.scenario.events import ACCOUNT
from plimsoll_simulation.scenario.manifests import Manifest
from plimsoll_testbed.rigs.cluster.installation import install
from plimsoll_testbed.rigs.controlplane import ControlPlane
from plimsoll_testbed.rigs.karpenter import Karpenter, instance_type

CLUSTER: Final = "harbor"
POOL: Final = "spot"
ZONE: Final = "us-east-1a"
CPUS_PER_NODE: Final = 4
HEARS_S: Final = 1.0
"""From a notice until Plimsoll has its event."""
NOTICE_S: Final = 120.0
HORIZON_S: Final = 150.0
LOOK_S: Final = 0.25
READY_S: Final = 300.0
_CREATED: Final = 201
_PROVIDER_ID: Final = re.compile(rb"kwok://([a-z0-9.-]+)")
_WORKLOADS: Final = {"Deployment": "deployments", "StatefulSet": "statefulsets"}

type Json = dict[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Setting:
    """What one run is like. All spot nodes get their notices in one second."""

    plimsoll: bool = True
    queue_delay: float | None = 15.0
    """Seconds until Karpenter hears beyond those until Plimsoll does; None: it never does."""
    node_startup: str = "40s"
    most_nodes: int = 12
    """The NodePool's limit."""
    dies: bool = False
    """Plimsoll ends four seconds after it began."""


@dataclass(slots=True, kw_only=True)
class Outcome:
    """What was seen of each workload, by its name, and of the nodes."""

    lost: dict[str, float] = field(default_factory=dict)
    """Ready replicas short of those wanted, by seconds."""
    zero: dict[str, float] = field(default_factory=dict)
    """Seconds without a ready replica."""
    launched: int = 0
    """Nodes beyond those of the start."""
    killed: int = 0
    """Pods that ran on a node when its instance ended."""


class _AsInstances:
    """A way to the API server on which a node of KWOK looks like an instance of EC2."""

    def __init__(self, way: Transport) -> None:
        self._way = way

    def call(self, method: str, path: str, **more: Unpack[RequestParts]) -> Response:
        answer = self._way.call(method, path, **more)
        return Response(
            status=answer.status,
            content=None if answer.content is None else _shown(answer.content),
            headers=answer.headers,
            events=None if answer.events is None else _ShownEvents(answer.events),
        )


@dataclass(slots=True)
class _ShownEvents:
    events: Events

    @property
    def over(self) -> bool:
        return self.events.over

    def take(self) -> Sequence[Raw | Mapping[str, Any]]:
        return [Raw(_shown(bytes(e))) if isinstance(e, Raw) else e for e in self.events.take()]

    def close(self) -> None:
        self.events.close()


def instance_of(node: str) -> str:
    """Return the instance that Plimsoll takes a node of KWOK for."""
    return f"i-{hashlib.sha256(node.encode()).hexdigest()[:17]}"


def _shown(content: bytes) -> bytes:
    return _PROVIDER_ID.sub(
        lambda found: f"aws:///{ZONE}/{instance_of(found[1].decode())}".encode(), content
    )


class _NodeGroups:
    """The port `NodeGroups`: the NodePools, which Karpenter alone grows."""

    def __init__(self, pools: NodePools) -> None:
        self._pools = pools

    def list(self, nodes: Sequence[Node]) -> Sequence[NodeGroup]:
        return self._pools.list(nodes)

    def grow(self, group: NodeGroup, add: int, zone: str | None, token: str) -> int:
        return self._pools.grow(group, add, zone, token)

    def heartbeat(self, hook: LifecycleHook, instance: str) -> None:
        raise AssertionError(f"{instance} has no hook {hook}")

    def complete_lifecycle(self, hook: LifecycleHook, instance: str) -> None:
        raise AssertionError(f"{instance} has no hook {hook}")

    def terminate(self, instance: str, *, decrement: bool) -> None:
        raise AssertionError(f"{instance} is Karpenter's to end ({decrement=})")


class _Ec2:
    """The ports of EC2 and ARC, which know nothing beyond what events tell."""

    def describe(self, ids: Sequence[str]) -> Mapping[str, Instance]:  # noqa: ARG002 - as above
        return {}

    def interrupted(self, ids: Sequence[str]) -> Sequence[InstanceNotice]:  # noqa: ARG002 - as above
        return ()

    def zones(self) -> Mapping[str, str]:
        return {}

    def active(self) -> Sequence[ZonalShift]:
        return ()


class _Words:
    """The port `Telemetry`, for whoever looks at a run."""

    def __init__(self, say: Callable[[str], None]) -> None:
        self._say = say

    def log(self, message: str, **facts: object) -> None:
        self._say(f"{message} {facts}")

    warn = log

    def count(self, metric: Metric, value: float = 1, *, cluster: str | None = None) -> None:
        pass


class _Plimsoll:
    """The services, with the queue of wake-ups as timers. No two reconciles work at the same time."""

    def __init__(self, plane: ControlPlane, say: Callable[[str], None]) -> None:
        self._exits = ExitStack()
        self._threads: list[threading.Thread] = []
        self._ended = threading.Event()
        self._holders = itertools.count()
        self.errors: list[Exception] = []
        self.index = MemoryNodeIndex()
        clock, ec2, words = SystemClock(), _Ec2(), _Words(say)
        workers, cluster_workers = ThreadWorkers(), ThreadWorkers(2)
        self._exits.callback(workers.close)
        self._exits.callback(cluster_workers.close)
        way = _AsInstances(plane.transport("plimsoll", connections=32))
        cluster = KubernetesCluster(way, CLUSTER, clock, workers=workers)
        access = Access(
            account=Account(Aws(ZONE[:-1]), clock),  # asked for the time only
            api=lambda: Requests(transport=way, cluster=CLUSTER),
            cluster=CLUSTER,
            warn=say,
        )
        groups = _NodeGroups(NodePools(access))
        registered = Cluster(
            name=CLUSTER,
            kind=ClusterKind.EKS,
            mode=Mode.ACT,
            region=ZONE[:-1],
            added=clock.now(),
        )
        self._services: Services = wire(
            Ports(
                registry=MemoryRegistry([registered]),
                index=self.index,
                instances=ec2,
                instances_of=lambda _: ec2,
                shifts_of=lambda _: ec2,
                clusters=_One(cluster),
                groups=lambda _: groups,
                limits=lambda _: AmpleLimits(),
                reports=MemoryReports(),
                pools=MemoryPools(),
                times=MemoryTimes(),
                announcer=MemoryAnnouncer(),
                wake_ups=self,
                resyncs=MemoryResyncs(),
                clock=clock,
                workers=workers,
                cluster_workers=cluster_workers,
                telemetry=words,
            ),
            sources=TrustedSources(drills=True),
        )

    def notices(self, bodies: Sequence[str]) -> None:
        """Take events, as the function `notices` does."""
        self.errors += filter(None, self._services.notices.receive(bodies))

    def send(self, cluster: str, delays: Sequence[int]) -> None:
        """Be the port `WakeUps`."""
        for delay in delays:
            thread = threading.Thread(target=self._wake, args=(cluster, delay), daemon=True)
            self._threads.append(thread)
            thread.start()

    def end(self) -> None:
        """Wake no more, and let what is at work end."""
        self._ended.set()
        for thread in self._threads:
            thread.join()
        self._exits.close()

    def _wake(self, cluster: str, delay: float) -> None:
        if self._ended.wait(delay):
            return
        try:
            self._services.drains.reconcile(cluster, f"holder-{next(self._holders)}")
        except Exception as error:  # noqa: BLE001 - whoever plays the run raises it
            self.errors.append(error)


@dataclass(frozen=True, slots=True)
class _One:
    """The port `Clusters`."""

    cluster: KubernetesCluster

    def open(self, cluster: Cluster) -> KubernetesCluster:  # noqa: ARG002 - there is no other
        return self.cluster


def play(
    objects: Sequence[Manifest], setting: Setting, *, say: Callable[[str], None] = lambda _: None
) -> Outcome:
    """Play one run, which takes about four minutes.

    Args:
        objects: what the cluster holds; every pod goes to nodes of the NodePool.
        setting: what the run is like.
        say: told what the services log.

    Raises:
        Refused: a program does not start, a service failed, or not all became Ready.
    """
    with ExitStack() as exits:
        plane = exits.enter_context(ControlPlane(settings=Settings()))
        manifests = Checkout.find().root / "infra" / "cluster"
        for folder in (manifests, *(manifests / overlay for overlay in OVERLAYS)):
            install(plane.transport(), folder)
        sizes = [
            instance_type("m5.xlarge", (ZONE,), cpu=str(CPUS_PER_NODE), memory="16Gi", pods="58")
        ]
        karpenter = exits.enter_context(Karpenter(plane, sizes, startup=setting.node_startup))
        karpenter.make_pool(POOL, limits={"cpu": str(CPUS_PER_NODE * setting.most_nodes)})
        run = _Run(plane, objects)
        run.start()
        plimsoll = _Plimsoll(plane, say)
        exits.callback(plimsoll.end)
        old = run.nodes()
        now = SystemClock().now()
        plimsoll.index.put(
            [
                IndexEntry(instance=instance_of(n), cluster=CLUSTER, node=n, zone=ZONE, seen=now)
                for n in old
            ]
        )
        events: list[tuple[float, Callable[[], None]]] = [
            (NOTICE_S, lambda: run.end_instances(old))
        ]
        if setting.plimsoll:
            bodies = [_event(node, now) for node in old]
            events.append((HEARS_S, lambda: plimsoll.notices(bodies)))
        if setting.dies:
            events.append((HEARS_S + 4.0, plimsoll.end))
        if setting.queue_delay is not None:
            hears = HEARS_S + setting.queue_delay
            events.append((hears, lambda: interrupt(karpenter, old)))
        run.watch(sorted(events, key=lambda event: event[0]))
        for error in plimsoll.errors:
            raise Refused("a service failed") from error
        return run.outcome


def interrupt(karpenter: Karpenter, nodes: Sequence[str]) -> None:
    """Let Karpenter hear that nodes are interrupted."""
    for node in nodes:
        karpenter.interrupt(node)


def _event(node: str, now: datetime) -> str:
    instance = instance_of(node)
    event = {
        "version": "0",
        "id": instance,
        "detail-type": "EC2 Spot Instance Interruption Warning",
        "source": DRILL_SOURCE,
        "account": ACCOUNT,
        "time": f"{now:%Y-%m-%dT%H:%M:%SZ}",
        "region": ZONE[:-1],
        "resources": [f"arn:aws:ec2:{ZONE}:instance/{instance}"],
        "detail": {"instance-id": instance, "instance-action": "terminate"},
    }
    return json.dumps(event)


class _Run:
    """The cluster of one run, and what is seen of it."""

    def __init__(self, plane: ControlPlane, objects: Sequence[Manifest]) -> None:
        self._plane = plane
        self._api = plane.transport()
        self._objects = objects
        self._wanted = {
            m.name: m.body["spec"].get("replicas", 1) for m in objects if m.kind in _WORKLOADS
        }
        self._known: set[str] = set()
        self.outcome = Outcome(
            lost=dict.fromkeys(self._wanted, 0.0), zero=dict.fromkeys(self._wanted, 0.0)
        )

    def start(self) -> None:
        """Create the objects and wait until all is Ready."""
        for manifest in self._objects:
            body = dict(manifest.sent)
            if "template" in body.get("spec", {}):
                body["spec"]["template"]["spec"]["nodeSelector"] = {NODE_POOL: POOL}
            group = body["apiVersion"]
            root = f"/apis/{group}" if "/" in group else f"/api/{group}"
            name = f"{manifest.kind.lower()}s"
            path = f"{root}/namespaces/{manifest.namespace}/{name}"
            answer = self._api.call("POST", path, body=body, content_type="application/json")
            if answer.status != _CREATED:
                raise Refused(f"{manifest.kind} {manifest.name}: {answer.status} {answer.body}")
        end = time.monotonic() + READY_S
        while self._serving() != self._wanted:
            if time.monotonic() > end:
                raise Refused(f"not all is Ready: {self._serving()}")
            time.sleep(LOOK_S)
        self._known = set(self.nodes())

    def nodes(self) -> Sequence[str]:
        """Return the nodes of the NodePool."""
        items = self._api.call("GET", "/api/v1/nodes").body["items"]
        return [n["metadata"]["name"] for n in items if NODE_POOL in n["metadata"]["labels"]]

    def watch(self, events: Sequence[tuple[float, Callable[[], None]]]) -> None:
        """Look at what serves until the horizon, while events happen at their times."""
        begun = last = time.monotonic()
        threads = [threading.Timer(at, act) for at, act in events]
        for thread in threads:
            thread.start()
        while last - begun < HORIZON_S:
            time.sleep(LOOK_S)
            serving, now = self._serving(), time.monotonic()
            for name, wanted in self._wanted.items():
                self.outcome.lost[name] += max(0, wanted - serving[name]) * (now - last)
                self.outcome.zero[name] += (now - last) * (serving[name] == 0)
            last = now
            self.outcome.launched += len(new := set(self.nodes()) - self._known)
            self._known |= new
        for thread in threads:
            thread.join()

    def end_instances(self, nodes: Sequence[str]) -> None:
        """End the instances of nodes that are still there, and whatever runs on them."""
        there = set(nodes) & set(self.nodes())
        self.outcome.killed += sum(p["spec"].get("nodeName") in there for p in self._pods())
        self._plane.vanish(*sorted(there))

    def _pods(self) -> Sequence[Json]:
        items: Sequence[Json] = self._api.call("GET", "/api/v1/namespaces/default/pods").body[
            "items"
        ]
        return items

    def _serving(self) -> Mapping[str, int]:
        found = dict.fromkeys(self._wanted, 0)
        for pod in self._pods():
            app = pod["metadata"].get("labels", {}).get("app", "")
            found[app] += is_ready(pod) and not is_deleting(pod)
        return {name: min(count, self._wanted[name]) for name, count in found.items()}
