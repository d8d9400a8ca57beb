"""Floors on the real scheduler: exact counts before, during and after the loss of spot."""

from __future__ import annotations

import random
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import pytest

from plimsoll.adapters.clock import SystemClock
from plimsoll.adapters.kubernetes import KubernetesCluster
from plimsoll.adapters.workers import SerialWorkers
from plimsoll.domain.clusters import Cluster, ClusterKind, Mode
from plimsoll.domain.names import CAPACITY_LABELS, INSTANCE_TYPE, MIN_ON_DEMAND
from plimsoll.domain.objects import parse_deployment
from plimsoll.domain.placement import plan_placement
from plimsoll.domain.placement.on_demand import floor_of
from plimsoll.domain.pods import OwnerKind, Ref
from plimsoll.services.wiring import Ports, Services, wire
from plimsoll_cli.snippet import pod_spec
from plimsoll_testbed.model.stores import (
    MemoryAnnouncer,
    MemoryNodeIndex,
    MemoryRegistry,
    MemoryReports,
    MemoryWakeUps,
)
from plimsoll_testbed.rigs.controlplane import ControlPlane
from tests.cluster.ground import Ground
from tests.support.floors import PENDING_SECONDS, on_demand, waits_in_vain
from tests.support.hollows import MERGE, a_deployment, a_template
from tests.support.workload_sets import Aws, Telemetry

pytestmark = pytest.mark.cluster

ROUNDS = 15
"""Placement runs until everything must have moved: one pod of a workload moves in each."""


@dataclass(frozen=True, kw_only=True)
class Cast:
    """Nodes and pods of one test, and the services that place them."""

    ground: Ground
    api: KubernetesCluster
    services: Services

    def join(self, family: str, count: int = 2, **more: str) -> Sequence[str]:
        capacity = "on-demand" if family == "od" else "spot"
        labels = {"node.kubernetes.io/capacity": capacity, INSTANCE_TYPE: f"{family}.large"}
        return self.ground.nodes(*(f"{family}-{n}" for n in range(count)), **labels, **more)

    def run_web(self, replicas: int, keep: str) -> None:
        """Let a Deployment state its floor, and then take the constraint that the snippet prints."""
        manifest = a_deployment("web", replicas)
        manifest["metadata"]["annotations"] = {MIN_ON_DEMAND: keep}
        self.ground.apply(manifest)
        self.services.placement.run()
        workload = parse_deployment(manifest)
        spec = pod_spec(workload, floor_of(workload))
        path = f"/apis/apps/v1/namespaces/{self.ground.name}/deployments/web"
        answer = self.ground.call("PATCH", path, {"spec": {"template": {"spec": spec}}}, MERGE)
        assert answer.status == 200, answer.body
        # Until the rollout ends, pods without the constraint stand among those that are counted.
        self.ground.until(lambda: not parse_deployment(self.ground.get(path)).rolling_out)

    def standing(self) -> Counter[str]:
        """Return the serving pods by the family of their node."""
        nodes = (p["spec"]["nodeName"] for p in self.ground.serving("web"))
        return Counter(n.removeprefix(f"{self.ground.name}-").partition("-")[0] for n in nodes)

    def until(self, *counts: int, od: int) -> None:
        """Wait until on-demand holds `od` pods, and the families together as many as are counted."""
        self.ground.until(
            lambda: self.standing()["od"] == od and self.standing().total() == od + sum(counts)
        )

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


@pytest.fixture
def cast(guarded: ControlPlane) -> Iterator[Cast]:
    clock, workers = SystemClock(), SerialWorkers()
    cluster = Cluster(
        name="ground",
        kind=ClusterKind.ENDPOINT,
        mode=Mode.ACT,
        region="us-east-1",
        added=datetime.now(UTC),
    )
    api = KubernetesCluster(guarded.transport("plimsoll"), "ground", clock, workers=workers)

    class One:
        def open(self, cluster: Cluster) -> KubernetesCluster:
            return api

    aws = Aws()
    services = wire(
        Ports(
            registry=MemoryRegistry([cluster]),
            index=MemoryNodeIndex(),
            instances=aws,
            clusters=One(),
            groups=lambda _: aws,
            reports=MemoryReports(),
            announcer=MemoryAnnouncer(),
            wake_ups=MemoryWakeUps(),
            clock=clock,
            workers=workers,
            cluster_workers=workers,
            telemetry=Telemetry(),
        )
    )
    with Ground(guarded) as ground:
        yield Cast(ground=ground, api=api, services=services)


@pytest.mark.parametrize(
    ("replicas", "keep", "families", "on_demand"),
    [(3, "1", 2, 1), (6, "2", 2, 2), (9, "30%", 2, 3), (8, "2", 3, 2), (4, "2", 1, 2)],
)
def test_the_floor_stands_before_during_and_after_the_loss_of_all_spot(
    cast: Cast, replicas: int, keep: str, families: int, on_demand: int
) -> None:
    cast.join("od", 3)
    spot = [node for f in range(families) for node in cast.join(f"f{f}")]
    cast.run_web(replicas, keep)
    cast.until(replicas - on_demand, od=on_demand)

    cast.lose(spot)
    lowest = replicas
    while cast.standing()["od"] < replicas:
        lowest = min(lowest, cast.standing()["od"])
        cast.services.placement.run()
        time.sleep(0.5)
    assert lowest >= on_demand

    for f in range(families):
        cast.join(f"n{f}")
    for _ in range(ROUNDS):
        cast.place()
        assert cast.standing()["od"] >= on_demand
    cast.until(replicas - on_demand, od=on_demand)


def test_a_full_survivor_of_a_lost_family_leaves_nothing_pending(cast: Cast) -> None:
    cast.join("od", 3)
    lost = cast.join("f0", 2)
    (survivor,) = cast.join("f1", 1)
    cast.run_web(9, "3")
    cast.until(6, od=3)
    filler: dict[str, Any] = a_template(
        "filler", cpu="6500m", nodeSelector={"kubernetes.io/hostname": survivor}
    )
    cast.ground.apply(a_deployment("filler", 1, filler))
    cast.ground.until(lambda: len(cast.ground.serving("filler")) == 1)

    cast.lose([*lost])
    cast.services.placement.run()

    cast.until(3, od=6)


def test_cordoned_on_demand_nodes_keep_nobody_pending(cast: Cast) -> None:
    od = cast.join("od", 2)
    cast.join("f0")
    cast.join("f1")
    for node in od:
        cast.ground.cordon(node)
    cast.run_web(6, "2")
    cast.until(6, od=0)


def test_a_single_replica_stands_on_spot_until_the_reserve_shrinks(cast: Cast) -> None:
    (on_demand,) = cast.join("od", 1)
    cast.join("f0")
    cast.run_web(1, "1")
    cast.until(1, od=0)

    filler: dict[str, Any] = a_template(
        "filler", cpu="7200m", nodeSelector={"kubernetes.io/hostname": on_demand}
    )
    cast.ground.apply(a_deployment("filler", 1, filler))
    cast.ground.until(lambda: len(cast.ground.serving("filler")) == 1)
    for _ in range(ROUNDS):
        cast.place()
        assert cast.standing().total() >= 1
    cast.until(od=1)


class History:
    """What happens to a workload with a floor on the real control plane, drawn by a seed."""

    def __init__(self, cast: Cast, seed: int) -> None:
        self.cast, self.ground = cast, cast.ground
        self.draw = random.Random(seed)
        self.families = 0
        self.spot: list[str] = []
        self.on_demand = [*cast.join("od", 3)]
        self.replicas = 9
        self.join()
        self.join()
        cast.run_web(self.replicas, "3")
        self.settle()

    @property
    def path(self) -> str:
        return f"/apis/apps/v1/namespaces/{self.ground.name}/deployments/web"

    def patch(self, path: str, body: dict[str, Any]) -> None:
        answer = self.ground.call("PATCH", path, body, MERGE)
        assert answer.status == 200, answer.body

    # What may happen.

    def scale(self) -> None:
        self.replicas = 21 - self.replicas
        self.patch(self.path, {"spec": {"replicas": self.replicas}})

    def roll_out(self) -> None:
        stamp = {"metadata": {"annotations": {"at": str(time.time())}}}
        self.patch(self.path, {"spec": {"template": stamp}})

    def join(self) -> None:
        self.families += 1
        self.spot += self.cast.join(f"f{self.families}")

    def join_tiny(self) -> None:
        self.families += 1
        labels = {CAPACITY_LABELS[0]: "spot", INSTANCE_TYPE: f"f{self.families}.small"}
        self.spot += self.ground.nodes(f"f{self.families}-0", cpu="1", **labels)

    def lose_all_spot(self) -> None:
        self.lose(self.spot)

    def lose_one(self) -> None:
        self.lose(self.spot[:1])

    def lose_half(self) -> None:
        self.lose(self.spot[::2])

    def lose(self, nodes: Sequence[str]) -> None:
        gone = [*nodes]
        self.cast.lose(gone)
        self.ground.until(
            lambda: not [p for p in self.ground.pods() if p["spec"].get("nodeName") in gone]
        )
        self.spot = [node for node in self.spot if node not in gone]
        for node in gone:
            self.ground.call("DELETE", f"/api/v1/nodes/{node}")

    def cordon(self) -> None:
        self.patch(f"/api/v1/nodes/{self.on_demand[0]}", {"spec": {"unschedulable": True}})

    def uncordon(self) -> None:
        self.patch(f"/api/v1/nodes/{self.on_demand[0]}", {"spec": {"unschedulable": None}})

    def happen(self) -> str:
        """Let something happen, and return what."""
        event = self.draw.choice(
            [
                *(self.scale, self.roll_out, self.join, self.join_tiny, self.cordon, self.uncordon),
                *(self.lose_all_spot, self.lose_one, self.lose_half),
            ]
        )
        event()
        return event.__name__

    # What must hold.

    def settle(self) -> None:
        """Run placement until every replica serves; no pod waits for long that would fit unspread."""
        end = time.monotonic() + 5 * PENDING_SECONDS
        while True:
            self.cast.place()
            seen = self.cast.api.observe()
            assert waits_in_vain(seen, datetime.now(UTC)) == []
            [web] = [w for w in seen.workloads if w.ref.namespace == self.ground.name]
            pods = seen.of_workload.get(web.ref, ())
            serving = [p for p in pods if p.serving and not p.released]
            if len(pods) == len(serving) == self.replicas and not web.rolling_out:
                return
            assert time.monotonic() < end, [str(p) for p in pods if not p.serving]
            time.sleep(1)

    def place(self) -> None:
        """Run placement in a settled cluster, and then the drain; the run ends no pod, whatever it labels."""
        before = {p["metadata"]["uid"] for p in self.ground.serving("web")}
        self.cast.services.placement.run()
        assert before <= {p["metadata"]["uid"] for p in self.ground.serving("web")}
        self.cast.services.drains.reconcile("ground", "test", seconds=20)

    def on_floor(self) -> tuple[int, int]:
        web = Ref(kind=OwnerKind.DEPLOYMENT, namespace=self.ground.name, name="web")
        return on_demand(self.cast.api.observe(), web)


@pytest.mark.long
@pytest.mark.parametrize("seed", range(30))
def test_the_floor_outlives_a_history_on_the_real_control_plane(cast: Cast, seed: int) -> None:
    history = History(cast, seed)
    for _ in range(4):
        event = history.happen()
        history.settle()
        history.place()  # the second run
        history.settle()
        ready, could = history.on_floor()
        assert ready >= min(3, could), f"after {event}: {ready} of {could}"
    end = time.monotonic() + 5 * PENDING_SECONDS
    while plan_placement(cast.api.observe(), datetime.now(UTC)).steps:
        assert time.monotonic() < end, "the return to spot never ends"
        history.place()
