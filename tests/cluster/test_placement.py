"""Floors on the real scheduler: exact counts before, during and after the loss of spot."""

from __future__ import annotations

import random
import time
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

import pytest

from plimsoll.domain.kubernetes import CAPACITY_LABELS, INSTANCE_TYPE, MIN_ON_DEMAND, OwnerKind, Ref
from plimsoll.domain.placement import plan_placement
from tests.cluster.placing import ROUNDS, Cast
from tests.support.fake_clusters import MERGE, a_deployment, a_stateful_set, a_template
from tests.support.floors import PENDING_SECONDS, on_demand, waits_in_vain

pytestmark = pytest.mark.cluster

WAYS = ["snippet", "policy"]


@pytest.mark.parametrize(
    ("replicas", "keep", "families", "on_demand"),
    [
        pytest.param(3, "1", 2, 1, marks=pytest.mark.long),
        (6, "2", 2, 2),
        (9, "30%", 2, 3),
        (8, "2", 3, 2),
        pytest.param(4, "2", 1, 2, marks=pytest.mark.long),
        pytest.param(4, "3", 1, 3, marks=pytest.mark.long),
        (4, "4", 1, 4),
    ],
)
@pytest.mark.parametrize("way", ["snippet", pytest.param("policy", marks=pytest.mark.long)])
def test_the_floor_stands_before_during_and_after_the_loss_of_all_spot(  # noqa: PLR0913, PLR0917 - a row of the table
    cast: Cast, way: str, replicas: int, keep: str, families: int, on_demand: int
) -> None:
    cast.join("od", 3)
    spot = [node for f in range(families) for node in cast.join(f"f{f}")]
    cast.run_web(replicas, keep, way)
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


def test_a_lost_family_leaves_its_share_to_the_others(cast: Cast) -> None:
    cast.join("od", 3)
    cast.join("f0")
    lost = cast.join("f1")
    cast.run_web(9, "3")
    cast.until(6, od=3)
    cast.lose(lost)
    cast.settle({"od": 4, "f0": 5}, {"od": 5, "f0": 4})


def test_a_tiny_spot_node_that_comes_back_pins_nothing(cast: Cast) -> None:
    cast.join("od", 3)
    lost = [*cast.join("f0"), *cast.join("f1")]
    cast.run_web(9, "3")
    cast.until(6, od=3)
    cast.lose(lost)
    cast.settle({"od": 9})
    cast.join("f2", 1, cpu="200m")
    cast.place()
    path = f"/apis/apps/v1/namespaces/{cast.ground.name}/deployments/web"
    assert cast.ground.call("PATCH", path, {"spec": {"replicas": 12}}, MERGE).status == 200
    cast.until(od=12)


def test_fresh_nodes_without_a_label_take_their_share(cast: Cast) -> None:
    old = cast.join("od", 2)
    cast.join("f0")
    cast.join("f1")
    cast.run_web(9, "3")
    cast.until(6, od=3)
    cast.join("od9")
    cast.lose(old)
    cast.settle({"od9": 3, "f0": 3, "f1": 3})


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


# Workloads with constraints of their own


def spread_by(key: str, when: str = "DoNotSchedule") -> dict[str, Any]:
    """Return a spread constraint over a topology of the owner's choice."""
    constraint = {
        "maxSkew": 1,
        "topologyKey": key,
        "whenUnsatisfiable": when,
        "labelSelector": {"matchLabels": {"app": "web"}},
    }
    return {"topologySpreadConstraints": [constraint]}


PORT = {"containerPort": 80, "hostPort": 8080}
APART = {
    "affinity": {
        "podAntiAffinity": {
            "requiredDuringSchedulingIgnoredDuringExecution": [
                {
                    "topologyKey": "kubernetes.io/hostname",
                    "labelSelector": {"matchLabels": {"app": "web"}},
                }
            ]
        }
    }
}
OWN = {
    "host ports": {"containers": [{"name": "main", "image": "x", "ports": [PORT]}]},
    "anti-affinity by host": APART,
    "a spread over zones": spread_by("topology.kubernetes.io/zone"),
    "a spread over hosts": spread_by("kubernetes.io/hostname"),
    "a soft spread": spread_by("topology.kubernetes.io/zone", "ScheduleAnyway"),
    "a node selector": {"nodeSelector": {"disk": "ssd"}},
}


@pytest.mark.parametrize("own", OWN.values(), ids=OWN)
@pytest.mark.parametrize("way", WAYS)
def test_the_owners_constraints_and_the_floor_hold_together(
    cast: Cast, own: dict[str, Any], way: str
) -> None:
    for family, count in (("od", 3), ("f0", 2)):
        for n in range(count):
            cast.join(family, 1, first=n, zone=f"us-east-1{'ab'[n % 2]}", disk="ssd")
    cast.run_web(4, "2", way, **own)
    cast.settle({"od": 2, "f0": 2})


def test_pods_with_volumes_stand_on_demand_nodes_of_their_zones(cast: Cast) -> None:
    for n, zone in enumerate("ab"):
        cast.join("od", 1, first=n, zone=f"us-east-1{zone}")
    cast.join("f0", zone="us-east-1b")
    claim = {
        "metadata": {"name": "data"},
        "spec": {
            "accessModes": ["ReadWriteOnce"],
            "resources": {"requests": {"storage": "1Gi"}},
        },
    }
    manifest = a_stateful_set("web", 2, volumeClaimTemplates=[claim])
    manifest["metadata"]["annotations"] = {MIN_ON_DEMAND: "1"}
    cast.opt_in()
    cast.ground.apply(manifest)
    cast.ground.until(lambda: len(cast.ground.serving("web")) == 2)
    for _ in range(2):
        cast.place()
    for pod in cast.ground.pods("web"):
        cast.ground.delete(pod["metadata"]["name"])
    cast.settle({"od": 2})


# Histories


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
