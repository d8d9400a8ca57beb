"""What the command line reaches, in memory: stores, and a fake cluster behind the real client code."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from importlib.metadata import version
from pathlib import Path
from typing import Any

from click.testing import CliRunner, Result

from plimsoll.adapters.kubernetes import KubernetesCluster, Response, Transport
from plimsoll.adapters.workers import SerialWorkers
from plimsoll.domain.capacity import VcpuQuota
from plimsoll.domain.errors import BadInput, PlimsollError, Refused, Temporary
from plimsoll.domain.interruptions import Interruption, LifecycleHook, NoticeRecord
from plimsoll.domain.kubernetes import NAMESPACE, Node
from plimsoll.domain.node_groups import Instance, NodeGroup
from plimsoll.domain.notices import Canary, InstanceNotice
from plimsoll.domain.registry import Cluster, ClusterKind, IndexEntry, Mode
from plimsoll.domain.reports import canary_echo
from plimsoll.services.ports import ClusterApi, NodeGroups
from plimsoll_cli import main
from plimsoll_cli.environment import Administered, Deployed
from plimsoll_cli.probes.aws import (
    AwsProbe,
    Concurrency,
    Direct,
    GroupSettings,
    Simulated,
    Target,
)
from plimsoll_cli.probes.kubernetes import GROUP, KubernetesProbe
from plimsoll_cli.setup.access import ClusterAccess
from plimsoll_cli.setup.objects import ClusterObjects
from plimsoll_cli.stack import RESERVES, Stack
from plimsoll_simulation.fake_aws.stores import (
    MemoryFrames,
    MemoryLayouts,
    MemoryNodeIndex,
    MemoryPools,
    MemoryRegistry,
    MemoryReports,
    MemoryTimes,
)
from plimsoll_simulation.fake_cluster.cluster import FakeCluster
from plimsoll_simulation.fake_cluster.transport import FakeTransport
from tests.support.builders import NOON, deployment_json, node_json, pod_spec_json
from tests.support.cluster_setups import MemoryAccess, MemoryObjects
from tests.support.preemptions import MemoryPreemptions
from tests.support.repeating import VirtualTime

EVENTS = Path(__file__).parents[1] / "events"
SPOT = "i-0123456789abcdef0"
"""The instance of the node `spot-1`."""


class StillClock(VirtualTime):
    """Noon, until somebody moves the hands."""

    def __init__(self, now: datetime = NOON) -> None:
        super().__init__(now)


class Away:
    """An API server that does not answer."""

    def call(self, method: str, path: str, **_: Any) -> Response:
        raise Temporary(f"{method} {path}: it does not answer")


class Counting:
    """Counts what is not a GET, nor a dry run."""

    def __init__(self, transport: Transport) -> None:
        self._transport = transport
        self.writes: list[str] = []

    def call(self, method: str, path: str, **request: Any) -> Response:
        if method != "GET" and "dryRun" not in (request.get("query") or {}):
            self.writes.append(f"{method} {path}")
        return self._transport.call(method, path, **request)


class FixedGroups:
    """Node groups that are what they are."""

    def __init__(self, groups: Sequence[NodeGroup]) -> None:
        self._groups = groups

    def list(self, nodes: Sequence[Node]) -> Sequence[NodeGroup]:
        return self._groups

    def grow(self, group: NodeGroup, add: int, zone: str | None, token: str) -> int:
        raise AssertionError("a command asked for capacity")

    def heartbeat(self, hook: LifecycleHook, instance: str) -> None:
        raise AssertionError("a command sent a heartbeat")

    def complete_lifecycle(self, hook: LifecycleHook, instance: str) -> None:
        raise AssertionError("a command completed a lifecycle action")

    def terminate(self, instance: str, *, decrement: bool) -> None:
        raise AssertionError("a preview must not write")


@dataclass
class FixedLimits:
    """An account of which tests say what it allows."""

    vcpus: VcpuQuota | PlimsollError = field(default_factory=lambda: VcpuQuota(limit=64, used=8))
    free: int = 100
    """Addresses of each subnet."""
    known: frozenset[str] = frozenset({"ami-1"})
    """Images."""

    def quota(self) -> VcpuQuota:
        if isinstance(self.vcpus, PlimsollError):
            raise self.vcpus
        return self.vcpus

    def free_addresses(self, subnets: Sequence[str]) -> Mapping[str, int]:
        return dict.fromkeys(subnets, self.free)

    def images(self, ids: Sequence[str]) -> frozenset[str]:
        return self.known & frozenset(ids)


class NoInstances:
    """An EC2 that knows no instance."""

    def describe(self, ids: Sequence[str]) -> Mapping[str, Instance]:
        return {}

    def interrupted(self, ids: Sequence[str]) -> Sequence[InstanceNotice]:
        return []

    def zones(self) -> Mapping[str, str]:
        return {}


@dataclass
class MemoryEnvironment:
    """Implements `plimsoll_cli.environment.Environment`, with what tests look at."""

    clock: StillClock = field(default_factory=StillClock)
    registry: MemoryRegistry = field(default_factory=MemoryRegistry)
    index: MemoryNodeIndex = field(default_factory=MemoryNodeIndex)
    reports: MemoryReports = field(default_factory=MemoryReports)
    pools: MemoryPools = field(default_factory=MemoryPools)
    frames: MemoryFrames = field(default_factory=MemoryFrames)
    times: MemoryTimes = field(default_factory=MemoryTimes)
    layouts: MemoryLayouts = field(default_factory=MemoryLayouts)
    history: MemoryPreemptions = field(default_factory=MemoryPreemptions)
    instances: NoInstances = field(default_factory=NoInstances)
    groups: Sequence[NodeGroup] = ()
    stack_status: str = "UPDATE_COMPLETE"
    stack_version: str | None = field(default_factory=lambda: version("plimsoll"))
    parameters: dict[str, str] = field(default_factory=dict)
    canary_seconds: float | None = 2.0
    """From the bus to the function; None: it never arrives."""
    direct: Direct = Direct.BY_THE_QUEUE
    targets: Sequence[Target] = ()
    group_settings: dict[str, GroupSettings] = field(default_factory=dict)
    limits: FixedLimits = field(default_factory=FixedLimits)
    simulated: Sequence[Simulated] = ()
    unknown_roles: Sequence[str] = ()
    queue_delays: dict[str, int] = field(default_factory=dict)
    """DelaySeconds of the queues of Karpenter, by name."""
    quota: int = 1000
    """Of concurrent executions of Lambda."""
    reserved: dict[str, int | None] = field(default_factory=lambda: dict(RESERVES["usual"]))
    """Of that quota, for each function of the stack."""
    reserved_by_others: int = 0
    profiles: dict[str, MemoryEnvironment] = field(default_factory=dict)
    """Stacks of other accounts."""
    account: str = "111122223333"
    transports: dict[str, Transport] = field(default_factory=dict)
    """By the name of the cluster."""
    stack_name: str = "plimsoll"
    access: ClusterAccess = field(default_factory=MemoryAccess)
    objects: ClusterObjects = field(default_factory=MemoryObjects)
    server: str = "https://harbor.example.com"
    """Where every context leads."""

    def preemptions(self, stack: str) -> MemoryPreemptions:
        if stack != "plimsoll-batch":
            raise BadInput(f"there is no stack {stack}: name another with --stack")
        return self.history

    def deployed(self, stack: str, profile: str | None = None) -> Deployed:
        if profile is not None:
            if profile not in self.profiles:
                raise BadInput(f"there is no profile {profile}")
            return self.profiles[profile].deployed(stack)
        if stack != self.stack_name:
            raise BadInput(f"there is no stack {stack}: name another with --stack")
        return Deployed(
            stack=Stack(
                name=stack,
                account=self.account,
                region="us-east-1",
                status=self.stack_status,
                outputs={} if self.stack_version is None else {"Version": self.stack_version},
                parameters=self.parameters,
            ),
            registry=self.registry,
            index=self.index,
            reports=self.reports,
            pools=self.pools,
            frames=self.frames,
            times=self.times,
            layouts=self.layouts,
            instances=self.instances,
            instances_of=lambda _: self.instances,
            clusters=self,
            requests=lambda cluster: self._api(cluster.name).requests,
            groups=self._groups,
            aws=MemoryProbe(self),
            access=self.access,
            probe=self._probe,
        )

    def by_kubeconfig(
        self, file: Path | None, context: str | None
    ) -> tuple[str, KubernetesCluster]:
        name = context or "harbor"
        if name not in self.transports:
            raise BadInput(f"the kubeconfig has no context {name!r}")
        return name, self._api(name)

    def administered(self, file: Path | None, context: str) -> Administered:
        return Administered(
            context=context, server=self.server, ca=None, kubeconfig=file, objects=self.objects
        )

    def open(self, cluster: Cluster) -> ClusterApi:
        return self._api(cluster.name)

    def _api(self, name: str) -> KubernetesCluster:
        transport = self.transports.get(name, Away())
        return KubernetesCluster(transport, name, self.clock, workers=SerialWorkers())

    def _probe(self, cluster: Cluster) -> KubernetesProbe:
        transport = self.transports.get(cluster.name, Away())
        group = GROUP if cluster.kind is ClusterKind.EKS else None
        return KubernetesProbe(transport, cluster.name, SerialWorkers(), group=group)

    def _groups(self, cluster: Cluster) -> NodeGroups:
        return FixedGroups(self.groups)


class MemoryProbe(AwsProbe):
    """Answers as its environment says."""

    def __init__(self, environment: MemoryEnvironment) -> None:
        self._environment = environment

    def send_canary(self, word: str) -> None:
        """Play the function's part at once, with the time that it would have taken."""
        seconds, sent = self._environment.canary_seconds, self._environment.clock.now()
        if seconds is not None:
            seen = sent + timedelta(seconds=seconds)
            echo = canary_echo(Canary(id="event", time=sent), word, seen=seen)
            self._environment.reports.merge(echo)

    def send_past_the_rules(self, word: str, now: datetime) -> Direct:
        return self._environment.direct

    def targets(self) -> Sequence[Target]:
        return self._environment.targets

    def simulated(self) -> Sequence[Simulated]:
        return self._environment.simulated

    def concurrency(self) -> Concurrency:
        quota, reserved = self._environment.quota, dict(self._environment.reserved)
        taken = self._environment.reserved_by_others + sum(n or 0 for n in reserved.values())
        wanted = RESERVES[self._environment.parameters.get("Size", "usual")]
        return Concurrency(quota=quota, unreserved=quota - taken, wanted=wanted, reserved=reserved)

    def reserve(self, function: str, executions: int) -> None:
        self._environment.reserved[function] = executions

    def limits(self, cluster: Cluster) -> FixedLimits:
        return self._environment.limits

    def group_settings(
        self, cluster: Cluster, groups: Sequence[NodeGroup]
    ) -> Mapping[str, GroupSettings]:
        known = self._environment.group_settings
        return {g.name: known[g.name] for g in groups if g.name in known}

    def queue_delay(self, cluster: Cluster, name: str) -> int:
        if name not in self._environment.queue_delays:
            raise Refused(f"read DelaySeconds of the queue {name}: AccessDenied")
        return self._environment.queue_delays[name]

    def unknown_roles(self, registered: Cluster) -> Sequence[str]:
        return self._environment.unknown_roles


def run(environment: MemoryEnvironment, *args: str, input: str | None = None) -> Result:  # noqa: A002 - click's word
    """Run a command line."""
    return CliRunner().invoke(main, args, obj=environment, input=input)


def a_cluster(name: str = "harbor", mode: Mode = Mode.OBSERVE) -> Cluster:
    return Cluster(name=name, kind=ClusterKind.EKS, mode=mode, region="us-east-1", added=NOON)


def entry(instance: str = SPOT, node: str = "spot-1", cluster: str = "harbor") -> IndexEntry:
    return IndexEntry(instance=instance, cluster=cluster, node=node, seen=NOON)


def shop(clock: StillClock, *, cpu: str = "500m") -> FakeCluster:
    """Return a settled cluster: two replicas of web, one of them on `spot-1`."""
    early = clock.now() - timedelta(minutes=10)
    cluster = FakeCluster(now=early)
    for node in (node_json("base-1"), node_json("spot-1", capacity="spot", instance=SPOT)):
        del node["status"]["conditions"]  # the cluster's own to say
        cluster.join(node, now=early)
    apart = {
        "maxSkew": 1,
        "topologyKey": "kubernetes.io/hostname",
        "whenUnsatisfiable": "ScheduleAnyway",
        "labelSelector": {"matchLabels": {"app": "web"}},
    }
    web = deployment_json(
        "web", replicas=2, template=pod_spec_json(cpu=cpu, topologySpreadConstraints=[apart])
    )
    for servers in ("status", "uid", "resourceVersion", "generation"):
        web.pop(servers, None)
        web["metadata"].pop(servers, None)
    ours = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}}
    cluster.apply([ours, web], now=early)
    cluster.step(clock.now())
    return cluster


def an_environment(
    *, registered: bool = True, mode: Mode = Mode.OBSERVE, cpu: str = "500m"
) -> tuple[MemoryEnvironment, Counting]:
    """Return an environment with the shop as the cluster harbor, and the count of writes to it."""
    environment = MemoryEnvironment()
    counting = Counting(FakeTransport(shop(environment.clock, cpu=cpu), environment.clock))
    environment.transports["harbor"] = counting
    if registered:
        environment.registry.add(a_cluster(mode=mode))
        environment.index.put([entry()])
    return environment, counting


def interrupt(
    environment: MemoryEnvironment,
    node: str = "spot-1",
    cluster: str = "harbor",
    *,
    kind: str = "spot-interruption",
    seconds: float | None = 120,
) -> None:
    """Let a node's record say that spot takes its instance in two minutes, or another notice."""
    api = environment.open(a_cluster(cluster))
    found = next(n for n in api.nodes() if n.name == node)
    notice = NoticeRecord(
        kind=kind,
        time=environment.clock.now(),
        id="event",
        ends=None if seconds is None else environment.clock.now() + timedelta(seconds=seconds),
    )
    api.cordon(
        found,
        Interruption(
            instance=found.instance or "",
            launched=None,
            node=node,
            notices=(notice,),
            cordoned=environment.clock.now(),
        ),
    )


def an_event(folder: Path, name: str = "spot-interruption.json", **changes: Any) -> str:
    """Write one of the example events into a folder, about `spot-1` and now."""
    event = json.loads((EVENTS / name).read_text())
    event["time"] = f"{NOON:%Y-%m-%dT%H:%M:%SZ}"
    if "instance-id" in event["detail"]:
        event["detail"]["instance-id"] = SPOT
    file = folder / "event.json"
    file.write_text(json.dumps({**event, **changes}))
    return str(file)
