"""Karpenter itself on a real control plane: what the simulated controller stands for, and how its objects are read.

Only the queue of its interruption controller is played. It is built first where that was not done yet.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

import pytest
import yaml

from plimsoll.adapters.aws import Aws
from plimsoll.adapters.clock import SystemClock
from plimsoll.adapters.kubernetes.objects import parse_node
from plimsoll.adapters.kubernetes.requests import Requests
from plimsoll.adapters.nodegroups.account import Account
from plimsoll.adapters.nodegroups.karpenter import NodePools
from plimsoll.adapters.nodegroups.kind import Access
from plimsoll.domain.node_groups import NodeGroup
from plimsoll_simulation.fake_cluster.conditions import is_deleting
from plimsoll_testbed.rigs.controlplane import ControlPlane
from plimsoll_testbed.rigs.karpenter import NODE_CLASS, Karpenter, instance_type
from tests.cluster.conftest import SETTINGS
from tests.cluster.ground import KEY, Ground
from tests.cluster.test_gpu_files import kubectl, plimsoll
from tests.support.fake_clusters import MERGE, a_budget, a_deployment, a_template
from tests.support.karpenters import KarpenterContract, Scene, protection

pytestmark = [pytest.mark.cluster, pytest.mark.long]

ZONES: Final = ("us-east-1a", "us-east-1b")
LARGE: Final = instance_type("m5.large", ZONES, cpu="2", memory="8Gi", pods="29")
WHOLE: Final = "1500m"
"""What a pod requests that shares its node with no other."""


@pytest.fixture(scope="module")
def karpenter_plane() -> Iterator[ControlPlane]:
    with ControlPlane(settings=SETTINGS) as plane:
        yield plane


@pytest.fixture(scope="module")
def karpenter(karpenter_plane: ControlPlane) -> Iterator[Karpenter]:
    with Karpenter(karpenter_plane, [LARGE]) as karpenter:
        yield karpenter


@dataclass(slots=True)
class Real:
    """A NodePool whose nodes only the pods of a ground go to."""

    ground: Ground
    karpenter: Karpenter
    node: str = ""

    def start(self, *manifests: dict[str, Any], limits: Mapping[str, str] | None = None) -> None:
        """Run `web`, and wait until Karpenter has made its node."""
        labels = {KEY: self.ground.name}
        self.karpenter.make_pool(self.ground.name, labels=labels, limits=limits)
        template = a_template("web", cpu=WHOLE, annotations={"startup": "1s", "stop": "1s"})
        self.ground.apply(a_deployment("web", 1, template), *manifests)
        self.ground.until(lambda: self.ground.serving("web"))
        self.node = self.ground.pods("web")[0]["spec"]["nodeName"]

    def interrupt(self) -> None:
        self.karpenter.interrupt(self.node)

    def until(self, holds: Callable[[], object], seconds: float) -> None:
        self.ground.until(holds, seconds)

    def stays(self, holds: Callable[[], object], seconds: float) -> None:
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            assert holds()
            time.sleep(0.1)

    def nodes(self) -> Sequence[dict[str, Any]]:
        nodes = self.ground.get("/api/v1/nodes")["items"]
        return [n for n in nodes if n["metadata"]["labels"].get(KEY) == self.ground.name]

    def staying(self, node: str) -> Sequence[str]:
        return [
            pod["metadata"]["labels"]["app"]
            for pod in self.ground.pods()
            if pod["spec"].get("nodeName") == node and not is_deleting(pod)
        ]

    def open_budget(self) -> None:
        path = f"/apis/policy/v1/namespaces/{self.ground.name}/poddisruptionbudgets/web"
        self._patch(path, {"spec": {"maxUnavailable": 1}})

    def protect(self, seconds: float) -> None:
        (pod,) = (p for p in self.ground.pods("web") if p["spec"].get("nodeName") == self.node)
        path = f"{self.ground.pods_path}/{pod['metadata']['name']}"
        self._patch(path, protection(pod, datetime.now(UTC), seconds))

    def scale(self, replicas: int) -> None:
        path = f"/apis/apps/v1/namespaces/{self.ground.name}/deployments/web"
        self._patch(path, {"spec": {"replicas": replicas}})

    def _patch(self, path: str, body: dict[str, Any]) -> None:
        answer = self.ground.call("PATCH", path, body, MERGE)
        assert answer.status == 200, answer.body


@pytest.fixture
def real(karpenter_plane: ControlPlane, karpenter: Karpenter) -> Iterator[Real]:
    with Ground(karpenter_plane) as ground:
        yield Real(ground, karpenter)


class TestTheProgram(KarpenterContract):
    @pytest.fixture
    def scene(self, real: Real) -> Scene:
        real.start()
        return real

    @pytest.fixture
    def held(self, real: Real) -> Scene:
        real.start(a_budget("web", "web", maxUnavailable=0))
        return real

    @pytest.fixture
    def full(self, real: Real) -> Scene:
        real.start(limits={"cpu": "2"})
        return real


def groups(real: Real) -> dict[str, NodeGroup]:
    """Return what Plimsoll reads of the ground's NodePool."""
    warnings: list[str] = []
    access = Access(
        account=Account(Aws("us-east-1"), SystemClock()),  # asked for the time only
        api=lambda: Requests(transport=real.ground.plane.transport(), cluster="shop"),
        cluster="shop",
        warn=warnings.append,
    )
    found = NodePools(access).list([parse_node(node) for node in real.nodes()])
    assert warnings == []
    return {g.name: g for g in found if g.name.startswith(real.ground.name)}


def test_a_node_pool_and_its_claims_are_read_as_karpenter_writes_them(real: Real):
    real.start()
    (group,) = groups(real).values()
    assert (group.name, group.kind, group.capacity) == (real.ground.name, "karpenter", "spot")
    assert (group.provisions, group.desired, group.refusals) == (True, 1, ())
    assert group.template is not None
    assert group.template.labels[KEY] == real.ground.name
    (node,) = map(parse_node, real.nodes())
    assert group.template.allocatable == node.allocatable
    assert set(group.zones) <= set(ZONES)


def test_a_claim_that_is_being_deleted_counts_no_more(real: Real):
    real.start(a_budget("web", "web", maxUnavailable=0))
    assert groups(real)[real.ground.name].desired == 1
    real.interrupt()
    assert groups(real)[real.ground.name].desired == 0
    real.open_budget()


def test_its_limits_bound_what_is_counted_on_and_both_ways_are_two_groups(real: Real):
    real.start()
    name = f"{real.ground.name}-both"
    real.karpenter.make_pool(name, capacities=("spot", "on-demand"), limits={"cpu": "6"})
    found = groups(real)
    assert {g: found[g].capacity for g in found if g.startswith(name)} == {
        f"{name}/on-demand": "on-demand",
        f"{name}/spot": "spot",
    }
    assert found[f"{name}/spot"].addable_nodes == 3


def test_it_takes_the_pools_and_overlays_of_a_plan_of_gpus(
    karpenter_plane: ControlPlane, karpenter: Karpenter, tmp_path: Path
):
    """The definitions refuse what they do not know, and Karpenter says whether a NodePool makes sense.

    The node class is set first, as the file says.
    """
    demand = tmp_path / "demand.json"
    demand.write_text(
        json.dumps(
            {
                "H100-80GB-HBM3": {"1g.10gb": 20, "2g.20gb": 3, "3g.40gb": 4},
                "H200": {"1g.18gb": 10, "7g.141gb": 2},
            }
        )
    )
    plimsoll("geometry", "--demand", str(demand), "--files", str(tmp_path))
    file = tmp_path / "karpenter.yaml"
    written = [*yaml.safe_load_all(file.read_text())]
    pools = [each for each in written if each["kind"] == "NodePool"]
    for pool in pools:
        pool["spec"]["template"]["spec"]["nodeClassRef"] = NODE_CLASS
    file.write_text(yaml.safe_dump_all(written))
    kubectl(karpenter_plane, "apply", "--server-side", "--validate=strict", "-f", file)
    assert pools
    for pool in pools:
        of = f"nodepool/{pool['metadata']['name']}"
        kubectl(karpenter_plane, "wait", "--for=condition=ValidationSucceeded", "--timeout=30s", of)
    kubectl(karpenter_plane, "delete", "-f", file, "--wait=false")
