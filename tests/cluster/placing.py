"""Nodes, a Deployment with a floor, and the services that place it on a real control plane."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cache
from typing import Any

from click.testing import CliRunner

from plimsoll.adapters.clock import SystemClock
from plimsoll.adapters.kubernetes import KubernetesCluster
from plimsoll.adapters.kubernetes.objects import parse_deployment
from plimsoll.adapters.workers import SerialWorkers
from plimsoll.domain.kubernetes import INSTANCE_TYPE, MIN_ON_DEMAND
from plimsoll.domain.placement import floor_of
from plimsoll.domain.registry import Cluster, ClusterKind, Mode
from plimsoll.services.wiring import Ports, Services, wire
from plimsoll_cli import main
from plimsoll_cli.plan.snippet import pod_spec
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
from plimsoll_testbed.rigs.controlplane import ControlPlane
from tests.cluster.ground import Ground
from tests.support.fake_clusters import MERGE, a_deployment, a_template
from tests.support.workload_sets import Aws, Telemetry

ROUNDS = 15
"""Placement runs until everything must have moved: one pod of a workload moves in each."""


@dataclass(frozen=True, kw_only=True)
class Cast:
    """Nodes and pods of one test, and the services that place them."""

    ground: Ground
    api: KubernetesCluster
    services: Services
    aws: Aws

    def join(self, family: str, count: int = 2, *, first: int = 0, **more: str) -> Sequence[str]:
        capacity = "on-demand" if family.startswith("od") else "spot"
        labels = {"node.kubernetes.io/capacity": capacity, INSTANCE_TYPE: f"{family}.large"}
        names = (f"{family}-{n}" for n in range(first, first + count))
        return self.ground.nodes(*names, **labels, **more)

    def opt_in(self) -> None:
        """Install the admission policy, as an administrator does, for the ground's namespace."""
        kubeconfig = str(self.ground.plane.kubeconfig())
        words = ["install-policy", "--kubeconfig", kubeconfig, "--namespace", self.ground.name]
        done = CliRunner().invoke(main, words)
        assert done.exit_code == 0, done.output

    def run_web(self, replicas: int, keep: str, way: str = "snippet", **spec: Any) -> None:
        """Let a Deployment state its floor, and then be constrained in one of the two ways."""
        manifest = a_deployment("web", replicas, a_template("web", **spec) if spec else None)
        manifest["metadata"]["annotations"] = {MIN_ON_DEMAND: keep}
        if way == "policy":
            self.opt_in()
        self.ground.apply(manifest)
        self.ground.until(lambda: len(self.ground.serving("web")) == replicas)
        self.services.placement.run()
        if way == "policy":
            self.services.placement.run()
            for pod in self.ground.pods("web"):  # a new one comes with its constraint
                self.ground.delete(pod["metadata"]["name"])
            return
        workload = parse_deployment(manifest)
        spec = pod_spec(workload, floor_of(workload))
        own = manifest["spec"]["template"]["spec"].get("topologySpreadConstraints", [])
        if "topologySpreadConstraints" in spec:
            spec["topologySpreadConstraints"] += own
        path = f"/apis/apps/v1/namespaces/{self.ground.name}/deployments/web"
        answer = self.ground.call("PATCH", path, {"spec": {"template": {"spec": spec}}}, MERGE)
        assert answer.status == 200, answer.body
        # Until the rollout ends, pods without the constraint stand among those that are counted.
        self.ground.until(lambda: self.rolled_out(path), seconds=180)

    def rolled_out(self, path: str) -> bool:
        """Place, and say whether a rollout has ended."""
        self.services.placement.run()
        return not parse_deployment(self.ground.get(path)).rolling_out

    def standing(self) -> Counter[str]:
        """Return the serving pods by the family of their node."""
        nodes = (p["spec"]["nodeName"] for p in self.ground.serving("web"))
        return Counter(n.removeprefix(f"{self.ground.name}-").partition("-")[0] for n in nodes)

    def until(self, *counts: int, od: int) -> None:
        """Wait until on-demand holds `od` pods, and the families together as many as are counted."""
        self.ground.until(
            lambda: self.standing()["od"] == od and self.standing().total() == od + sum(counts)
        )

    def settle(self, *counts: dict[str, int]) -> None:
        """Place again and again, as the schedule does, until the families hold one of these counts."""

        def settled() -> bool:
            self.place()
            return self.standing() in counts

        self.ground.until(settled)

    def lose(self, nodes: Sequence[str]) -> None:
        """Cordon nodes and evict what stands on them."""
        for node in nodes:
            self.ground.cordon(node)
        for pod in self.ground.pods("web"):
            if pod["spec"].get("nodeName") in nodes:
                self.ground.delete(pod["metadata"]["name"])

    def place(self) -> None:
        self.services.placement.run()
        self.services.drains.reconcile("ground", "test", seconds=10)


@contextmanager
def a_cast(plane: ControlPlane) -> Iterator[Cast]:
    """Yield a ground, and the services that place what stands on it with the rights of `infra/cluster`."""
    clock, workers = SystemClock(), SerialWorkers()
    cluster = Cluster(
        name="ground",
        kind=ClusterKind.ENDPOINT,
        mode=Mode.ACT,
        region="us-east-1",
        added=datetime.now(UTC),
    )
    api = KubernetesCluster(plane.transport("plimsoll"), "ground", clock, workers=workers)

    class One:
        def open(self, cluster: Cluster) -> KubernetesCluster:
            return api

    aws = Aws()
    services = wire(
        Ports(
            registry=MemoryRegistry([cluster]),
            index=MemoryNodeIndex(),
            instances=aws,
            instances_of=lambda _: aws,
            shifts_of=lambda _: aws,
            clusters=One(),
            groups=lambda _: aws,
            limits=lambda _: AmpleLimits(),
            reports=MemoryReports(),
            pools=MemoryPools(),
            times=MemoryTimes(),
            layouts=cache(MemoryLayouts),
            announcer=MemoryAnnouncer(),
            wake_ups=MemoryWakeUps(),
            resyncs=MemoryResyncs(),
            clock=clock,
            workers=workers,
            cluster_workers=workers,
            telemetry=Telemetry(),
        )
    )
    with Ground(plane) as ground:
        yield Cast(ground=ground, api=api, services=services, aws=aws)
