"""The services over a fake cluster, stores in memory and a clock to move.

Everything is the real thing but AWS, whose node groups and instances are told what to say.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import Any

from plimsoll.adapters.kubernetes import KubernetesCluster
from plimsoll.adapters.workers import SerialWorkers
from plimsoll.domain.drain import GATHER_NOTICES
from plimsoll.domain.errors import PlimsollError
from plimsoll.domain.interruptions import LifecycleHook
from plimsoll.domain.kubernetes import Node
from plimsoll.domain.node_groups import Instance, NodeGroup
from plimsoll.domain.notices import InstanceNotice, SpotInterruption, ZonalShift
from plimsoll.domain.registry import Cluster, ClusterKind, Mode
from plimsoll.domain.reports import Metric
from plimsoll.services.ports import FrameSink, Limits, NodeGroups, Traces
from plimsoll.services.untraced import UNTRACED
from plimsoll.services.wiring import Ports, Services, wire
from plimsoll_simulation.fake_aws.machines import zone_id_of
from plimsoll_simulation.fake_aws.stores import (
    AmpleLimits,
    MemoryAnnouncer,
    MemoryLayouts,
    MemoryNodeIndex,
    MemoryPools,
    MemoryRegistry,
    MemoryReports,
    MemoryResyncs,
    MemoryTimes,
    MemoryWakeUps,
)
from plimsoll_simulation.fake_cluster.cluster import FakeCluster
from plimsoll_simulation.fake_cluster.settings import Settings
from plimsoll_simulation.fake_cluster.transport import FakeTransport
from tests.support.builders import NOON, node_json
from tests.support.repeating import VirtualTime

LAUNCHED = NOON - timedelta(hours=6)


@dataclass
class Telemetry:
    """Keeps what services said."""

    said: list[tuple[str, dict[str, object]]] = field(default_factory=list)
    warned: list[str] = field(default_factory=list)
    metrics: Counter[str] = field(default_factory=Counter)
    of_clusters: Counter[tuple[str, str]] = field(default_factory=Counter)

    def log(self, message: str, **facts: object) -> None:
        self.said.append((message, facts))

    def warn(self, message: str, **facts: object) -> None:
        self.warned.append(message)

    def count(self, metric: Metric, value: float = 1, *, cluster: str | None = None) -> None:
        if cluster is not None:
            self.of_clusters[metric, cluster] += value  # type: ignore[assignment]  # as below
            return
        self.metrics[metric] += value  # type: ignore[assignment]  # Counter adds floats as well


@dataclass
class Aws:
    """Node groups and instances that say what the test wants, and remember what was asked."""

    groups: list[NodeGroup] = field(default_factory=list)
    known: dict[str, Instance] = field(default_factory=dict)
    silent: list[InstanceNotice] = field(default_factory=list)
    """What `interrupted` finds."""
    asked: list[tuple[str, int]] = field(default_factory=list)
    completed: list[str] = field(default_factory=list)
    beaten: list[str] = field(default_factory=list)
    renewed: list[str] = field(default_factory=list)
    described: list[str] = field(default_factory=list)
    questions: list[Sequence[str]] = field(default_factory=list)
    """Of which instances it was asked whether they end."""
    shifts: list[ZonalShift] = field(default_factory=list)
    """What ARC lists as active."""
    fails: Exception | None = None

    def list(self, nodes: Sequence[Node]) -> Sequence[NodeGroup]:
        self._fail()
        return self.groups

    def grow(self, group: NodeGroup, add: int, zone: str | None, token: str) -> int:
        self._fail()
        self.asked.append((group.name, add))
        self.groups = [
            replace(g, desired=g.desired + add) if g.name == group.name else g for g in self.groups
        ]
        return add

    def heartbeat(self, hook: LifecycleHook, instance: str) -> None:
        self.beaten.append(instance)

    def complete_lifecycle(self, hook: LifecycleHook, instance: str) -> None:
        self.completed.append(instance)

    def terminate(self, instance: str, *, decrement: bool) -> None:
        self.renewed.append(instance)

    def describe(self, ids: Sequence[str]) -> Mapping[str, Instance]:
        self._fail()
        self.described += ids
        return {i: self.known[i] for i in ids if i in self.known}

    def interrupted(self, ids: Sequence[str]) -> Sequence[InstanceNotice]:
        self.questions.append(ids)
        self._fail()
        return [notice for notice in self.silent if notice.instance in ids]

    def zones(self) -> Mapping[str, str]:
        self._fail()
        return {zone_id_of(name): name for name in ("us-east-1a", "us-east-1b", "us-east-1c")}

    def active(self) -> Sequence[ZonalShift]:
        self._fail()
        return [*self.shifts]

    def _fail(self) -> None:
        if self.fails is not None:
            raise self.fails


@dataclass(frozen=True)
class Minute:
    """What the schedule of a minute leads to: a request for each cluster, and its resync."""

    services: Services
    queue: MemoryResyncs

    def run(self) -> int:
        """Return how many interruptions are open."""
        self.services.resync_schedule.run()
        requests, self.queue.sent = self.queue.sent, []
        for request in requests:
            if request.place is not None:
                self.services.zonal_shifts.run(request)
        return sum(self.services.resync.run(request) for request in requests if not request.place)


def method(act: Callable[..., Any]) -> Callable[..., Any]:
    """Return what stands in for a method of all objects of a class."""
    return lambda _, *args, **named: act(*args, **named)


class WiredServices(VirtualTime):
    """One registered cluster `harbor`, in act mode unless told otherwise."""

    def __init__(
        self,
        *,
        mode: Mode = Mode.ACT,
        kill_switch: bool = False,
        times: MemoryTimes | None = None,
        frames: FrameSink | None = None,
        traces: Traces = UNTRACED,
    ) -> None:
        super().__init__(NOON)
        self.fake_cluster = FakeCluster(
            now=NOON,
            settings=Settings(pod_startup=timedelta(seconds=5), pod_stop=timedelta(seconds=1)),
        )
        self.fake_cluster.apply(
            [{"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "plimsoll"}}], now=NOON
        )
        self.cluster = Cluster(
            name="harbor", kind=ClusterKind.EKS, mode=mode, region="us-east-1", added=NOON
        )
        self.aws = Aws()
        self.telemetry = Telemetry()
        self.registry = MemoryRegistry([self.cluster])
        self.index = MemoryNodeIndex()
        self.reports = MemoryReports()
        self.pools = MemoryPools()
        self.times = times or MemoryTimes()
        self.layouts = MemoryLayouts()
        self.limits: Limits = AmpleLimits()
        self.policies_missing: Sequence[str] | PlimsollError = ()
        self.wake_ups = MemoryWakeUps()
        self.resyncs = MemoryResyncs()
        self.announcer = MemoryAnnouncer()
        self.workers = SerialWorkers()
        self.api = KubernetesCluster(
            FakeTransport(self.fake_cluster, self), "harbor", self, workers=self.workers
        )
        ports = Ports(
            registry=self.registry,
            index=self.index,
            instances=self.aws,
            instances_of=lambda _: self.aws,
            shifts_of=lambda _: self.aws,
            clusters=self,
            groups=self.node_groups,
            limits=lambda _: self.limits,
            policies_missing=lambda _: self._policies_missing(),
            reports=self.reports,
            pools=self.pools,
            times=self.times,
            layouts=lambda: self.layouts,
            frames=None if frames is None else lambda: frames,
            announcer=self.announcer,
            wake_ups=self.wake_ups,
            resyncs=self.resyncs,
            clock=self,
            workers=self.workers,
            cluster_workers=self.workers,
            telemetry=self.telemetry,
            traces=traces,
        )
        self.services = wire(ports, kill_switch=kill_switch)
        self.notices = self.services.notices
        self.drains = self.services.drains
        self.placement = self.services.placement
        self.resync = Minute(self.services, self.resyncs)

    # The ports `RepeatingClock`, `Clusters` and the factory of node groups.

    def pass_to(self, time: datetime) -> None:
        super().pass_to(time)
        self.fake_cluster.step(time)

    def open(self, cluster: Cluster) -> KubernetesCluster:
        return self.api

    def node_groups(self, cluster: Cluster) -> NodeGroups:
        return self.aws

    def _policies_missing(self) -> Sequence[str]:
        if isinstance(self.policies_missing, PlimsollError):
            raise self.policies_missing
        return self.policies_missing

    # What tests do, and what they read.

    def join(self, name: str, *, capacity: str = "on-demand", **how: Any) -> str:
        """Let a node join; EC2 knows its instance, whose id is returned."""
        node = node_json(name, capacity=capacity, **how)
        for key in ("uid", "resourceVersion", "creationTimestamp"):
            del node["metadata"][key]
        del node["status"]["conditions"]  # the kubelet's to say
        self.fake_cluster.join(node, now=self.time)
        instance: str = node["spec"]["providerID"].rpartition("/")[2]
        self.aws.known[instance] = Instance(
            id=instance,
            state="running",
            launched=LAUNCHED,
            zone="us-east-1a",
            instance_type="m5.large",
            spot=capacity == "spot",
            tags=(("kubernetes.io/cluster/harbor", "owned"),),
        )
        return instance

    def apply(self, *manifests: dict[str, Any], settle: float = 20) -> None:
        self.fake_cluster.apply(manifests, now=self.time)
        self.sleep(settle)

    def get(self, path: str) -> dict[str, Any]:
        answer = self.fake_cluster.handle("GET", path, now=self.time)
        body: dict[str, Any] = answer.body
        return body

    def node(self, name: str) -> Node:
        return next(n for n in self.api.nodes() if n.name == name)

    def version(self) -> str:
        """Return a mark of everything in the cluster: it changes with every write."""
        version: str = self.get("/api/v1/nodes")["metadata"]["resourceVersion"]
        return version

    def pods_on(self, name: str) -> list[str]:
        return sorted(
            p["metadata"]["name"]
            for p in self.get("/api/v1/pods")["items"]
            if p["spec"].get("nodeName") == name
        )

    def ready(self, app: str) -> int:
        return sum(
            p["metadata"]["labels"].get("app") == app
            and "deletionTimestamp" not in p["metadata"]
            and any(
                c["type"] == "Ready" and c["status"] == "True"
                for c in p.get("status", {}).get("conditions", ())
            )
            for p in self.get("/api/v1/pods")["items"]
        )

    def spot_event(self, instance: str, **detail: Any) -> str:
        kind = "EC2 Spot Instance Interruption Warning"
        return self._event(kind, instance, {"instance-action": "terminate"} | detail)

    def rebalance_event(self, instance: str) -> str:
        return self._event("EC2 Instance Rebalance Recommendation", instance, {})

    def state_event(self, instance: str, state: str) -> str:
        return self._event("EC2 Instance State-change Notification", instance, {"state": state})

    def terminating_event(self, instance: str, **detail: Any) -> str:
        return json.dumps(
            json.loads(self._event("EC2 Instance-terminate Lifecycle Action", instance, {}))
            | {
                "source": "aws.autoscaling",
                "detail": {
                    "EC2InstanceId": instance,
                    "AutoScalingGroupName": "spot",
                    "LifecycleHookName": "plimsoll-drain",
                    **detail,
                },
            }
        )

    def _event(self, kind: str, instance: str, detail: dict[str, Any]) -> str:
        return json.dumps(
            {
                "version": "0",
                "id": f"{kind} of {instance}",
                "detail-type": kind,
                "source": "aws.ec2",
                "account": "111122223333",
                "time": f"{self.time:%Y-%m-%dT%H:%M:%SZ}",
                "region": "us-east-1",
                "resources": [],
                "detail": {"instance-id": instance} | detail,
            }
        )


def deployment(
    name: str = "web", *, replicas: int = 3, cpu: str = "500m", **spec: Any
) -> dict[str, Any]:
    """Return the manifest of a Deployment that the fake cluster takes."""
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": name, "namespace": "default"},
        "spec": {
            "replicas": replicas,
            "selector": {"matchLabels": {"app": name}},
            "template": {
                "metadata": {"labels": {"app": name}},
                "spec": {
                    "terminationGracePeriodSeconds": 10,
                    "containers": [
                        {"name": "main", "image": "app", "resources": {"requests": {"cpu": cpu}}}
                    ],
                    **spec,
                },
            },
        },
    }


def a_spot_notice(rig: WiredServices, instance: str) -> SpotInterruption:
    """Return what EC2 says of an instance, under an id that no event has."""
    return SpotInterruption(
        instance=instance,
        time=rig.time,
        account="111122223333",
        region="us-east-1",
        id="found",
        action="terminate",
    )


def handled(rig: WiredServices, *bodies: str) -> None:
    assert rig.notices.receive(bodies) == [None] * len(bodies)


def advised(rig: WiredServices, *instances: str) -> None:
    """Deliver recommendations, and wait until all of that moment are there."""
    handled(rig, *map(rig.rebalance_event, instances))
    rig.sleep(GATHER_NOTICES.total_seconds())


def a_pod_of_a_database(name: str) -> dict[str, Any]:
    """Return a pod whose controller nobody knows: it does not run, so the test makes pods anew."""
    owner = {"apiVersion": "example.com/v1", "kind": "Database", "name": "db", "uid": "uid-of-db"}
    container = {"name": "main", "image": "db", "resources": {"requests": {"cpu": "100m"}}}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": name,
            "namespace": "default",
            "labels": {"app": "db"},
            "ownerReferences": [owner | {"controller": True}],
        },
        "spec": {"containers": [container]},
    }


def interrupt(rig: WiredServices, *workloads: dict[str, Any], elsewhere: bool = False) -> str:
    """Interrupt a node on which these workloads stand; `elsewhere` adds another that has headroom."""
    instance = rig.join("spot", capacity="spot")
    rig.apply(*workloads)
    if elsewhere:
        rig.join("od")
    handled(rig, rig.spot_event(instance))
    return instance


class Interrupted(WiredServices):
    """A rig in which something happens in the first pause of a reconcile."""

    meanwhile: Callable[[], None] | None = None

    def sleep(self, seconds: float) -> None:
        then, self.meanwhile = self.meanwhile, None
        if then is not None:
            then()
        super().sleep(seconds)
