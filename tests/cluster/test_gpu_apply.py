"""A plan of layouts carried out on a real API server, beside real DaemonSets and a stand-in of mig-manager.

The executor comes as plimsoll-gpu with `infra/agent/gpu-apply` in force, and its pods leave as plimsoll-agent. It is
a new one in each round, as after a restart. Only its time-outs are shortened.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from hashlib import sha256
from typing import Any

import pytest
import yaml

from plimsoll.adapters.clock import SystemClock
from plimsoll.adapters.kubernetes import KubernetesCluster
from plimsoll.adapters.kubernetes.client import ClientTransport
from plimsoll.adapters.kubernetes.requests import MERGE_PATCH
from plimsoll.adapters.workers import ThreadWorkers
from plimsoll.domain.errors import Temporary
from plimsoll.domain.kubernetes import GPU_CHANGE, MIG_STATE, NAMESPACE
from plimsoll_agent.gpu_change import PAUSED, Limits
from plimsoll_agent.gpu_executor import GpuExecutor
from plimsoll_agent.gpu_journal import GpuChange
from plimsoll_agent.gpu_wiring import DRAIN
from plimsoll_cli.gpu.apply_files import grants
from plimsoll_service.wire.documents import decode
from plimsoll_service.wire.gpu_plan import CONFIG_MAP, KEY
from plimsoll_simulation.fake_cluster.conditions import is_ready
from plimsoll_simulation.rigs.mig_manager import DEPLOY, MIG, PLUGIN, MigManager
from plimsoll_testbed.rigs.controlplane import ControlPlane
from tests.cluster.conftest import SETTINGS
from tests.cluster.ground import Ground
from tests.cluster.installed import until
from tests.cluster.test_agent import Site, Token
from tests.support import fake_clusters
from tests.support.gpu_nodes import LARGE, SMALL, WHOLE, Heard

pytestmark = pytest.mark.cluster

type Json = dict[str, Any]

OPERATOR = "gpu-operator"
HALVES, MIXED, SLICES = {LARGE: 4}, {LARGE: 2, SMALL: 6}, {SMALL: 14}
LAYOUTS = {"all-disabled": WHOLE, "halves": HALVES, "mixed": MIXED, "slices": SLICES}
FILE = "version: v1\nmig-configs:\n" + "".join(f"  {name}: []\n" for name in LAYOUTS)
NODES = ("served", "fails", "unknown", "stuck", "short", "human")
LIMITS = Limits(
    empties=timedelta(seconds=60),
    begins=timedelta(seconds=6),
    changes=timedelta(seconds=15),
    reboots=timedelta(seconds=20),
    settles=timedelta(seconds=8),
    steady=timedelta(seconds=1.5),
)
ENDED = {"done", "stopped", "alert"}


@dataclass
class Fleet:
    """Nodes of two GPUs with their managers, and the executor."""

    site: Site
    ground: Ground
    heard: Heard = field(default_factory=Heard)
    managers: dict[str, MigManager] = field(default_factory=dict)
    planned: Mapping[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        token = self.site.token("plimsoll-gpu")
        plane, clock = self.site.plane, SystemClock()
        for name in (*NODES, "spare"):
            labels = {MIG: "all-disabled", MIG_STATE: "success", PLUGIN: "true"}
            (node,) = self.ground.nodes(name, cpu="64", **labels)
            self.managers[name] = MigManager(
                transport=plane.transport(),
                node=node,
                layouts=dict(LAYOUTS),
                gpus=WHOLE,
                applying=timedelta(seconds=1),
            )

        own, drain = (
            ClientTransport(plane.url, ca=plane.ca, token=Token(token), as_user=user)
            for user in (None, DRAIN)
        )

        def cluster(transport: ClientTransport) -> KubernetesCluster:
            return KubernetesCluster(transport, "harbor", clock, workers=ThreadWorkers(4))

        self.executor: Callable[[], GpuExecutor] = lambda: GpuExecutor(
            api=cluster(own),
            drain=cluster(drain),
            clock=clock,
            progress=self.heard,
            limits=LIMITS,
        )

    def node(self, name: str) -> Json:
        return self.ground.get(f"/api/v1/nodes/{self.ground.name}-{name}")

    def label(self, name: str, **labels: str) -> None:
        body = {"metadata": {"labels": labels}}
        path = f"/api/v1/nodes/{self.ground.name}-{name}"
        assert self.ground.call("PATCH", path, body, MERGE_PATCH).status == 200

    def gpus(self, name: str) -> Mapping[str, int]:
        return gpus_of(self.node(name))

    def step(self, name: str) -> str:
        """Return how far the plan as it is now has come with a Node; of an alert only one after which nothing is tried."""
        text = self.node(name)["metadata"].get("annotations", {}).get(GPU_CHANGE)
        change = None if text is None else decode(text.encode(), GpuChange)
        if change is None or change.target != self.planned[name]:
            return "none"
        return "retries" if change.step == "alert" and not change.final else change.step

    def plan(self, **layouts: str) -> None:
        self.planned = layouts
        nodes = [
            {
                "name": f"{self.ground.name}-{name}",
                "uid": self.node(name)["metadata"]["uid"],
                "value": value,
                "allocatable": LAYOUTS[value],
            }
            for name, value in layouts.items()
        ]
        source = {"namespace": OPERATOR, "name": "plimsoll-mig-config", "key": "config.yaml"}
        digest = sha256(FILE.encode()).hexdigest()
        plan = {"config": source | {"sha256": digest}, "nodes": nodes, "nodes_per_hour": 100}
        config_map(self.ground, NAMESPACE, CONFIG_MAP, {KEY: json.dumps(plan)})

    def managed(self) -> None:
        for manager in self.managers.values():
            manager.step(SystemClock().now())

    def run(self, ended: Callable[[], bool], seconds: float = 150) -> None:
        """Let managers and executor work; no Node may be open at any moment without its GPUs."""
        end = time.monotonic() + seconds
        while not ended():
            steps = {name: self.step(name) for name in NODES}
            assert time.monotonic() < end, (steps, self.heard.lines[-5:], self.heard.warnings[-5:])
            self.managed()
            try:
                self.executor().round()
            except Temporary as error:
                self.heard.warn("a round failed", because=str(error))
            for name in NODES:
                node = self.node(name)
                assert node["spec"].get("unschedulable") or gpus_of(node), name

    def in_service(self, name: str) -> bool:
        node = self.node(name)
        labels = node["metadata"]["labels"]
        return (
            is_ready(node)
            and not node["spec"].get("unschedulable")
            and PAUSED not in labels.values()
            and gpus_of(node) == LAYOUTS[labels[MIG]]
        )


def gpus_of(node: Json) -> Mapping[str, int]:
    amounts = node["status"]["allocatable"].items()
    return {k: int(n) for k, n in amounts if k.startswith("nvidia.com/") and n != "0"}


def config_map(ground: Ground, namespace: str, name: str, data: Mapping[str, str]) -> None:
    path = f"/api/v1/namespaces/{namespace}/configmaps"
    if ground.call("GET", f"{path}/{name}").status == 200:
        assert ground.call("PATCH", f"{path}/{name}", {"data": data}, MERGE_PATCH).status == 200
    else:
        ground.create(path, {"metadata": {"name": name}, "data": data})


@pytest.fixture(scope="module")
def fleet() -> Iterator[Fleet]:
    with ControlPlane(settings=SETTINGS) as plane, Ground(plane) as ground:
        site = Site(plane)
        ground.create("/api/v1/namespaces", {"metadata": {"name": OPERATOR}})
        site.apply("act")
        site.apply("gpu-apply")
        for document in yaml.safe_load_all(grants(set(LAYOUTS) - {"all-disabled"})):
            kind = f"{document['kind'].lower()}s"
            ground.create(f"/apis/rbac.authorization.k8s.io/v1/{kind}", document)
        config_map(ground, OPERATOR, "plimsoll-mig-config", {"config.yaml": FILE})
        fleet = Fleet(site, ground)
        template = fake_clusters.a_template(
            "device-plugin",
            nodeSelector={f"{DEPLOY}device-plugin": "true"},
            tolerations=[{"operator": "Exists"}],
        )
        ground.apply(fake_clusters.a_daemon_set("device-plugin", template))

        def shown() -> bool:
            fleet.managed()
            return all(fleet.gpus(name) == WHOLE for name in fleet.managers)

        until(shown)
        agent = site.agent("plimsoll-gpu")
        foreign = {"metadata": {"labels": {"team": "red"}}}
        path = f"/api/v1/nodes/{ground.name}-spare"
        until(
            lambda: (
                agent.call(
                    "PATCH",
                    path,
                    query={"dryRun": "All"},
                    body=foreign,
                    content_type=MERGE_PATCH,
                ).status
                == 403
            )
        )
        yield fleet


def test_every_node_gets_its_first_layout_and_is_in_service_again(fleet: Fleet):
    fleet.plan(**dict.fromkeys((*NODES, "spare"), "halves"))
    fleet.run(lambda: {fleet.step(name) for name in (*NODES, "spare")} == {"done"})
    for name in NODES:
        assert (fleet.gpus(name), fleet.in_service(name)) == (HALVES, True)
    assert not fleet.heard.warnings


def test_whatever_mig_manager_does_no_node_is_stranded_and_pods_are_replaced_before_they_leave(
    fleet: Fleet,
):
    """A later change: now a failure of mig-manager leaves the device plugin away, also when the old label is put back."""
    ground = fleet.ground
    for name in ("served", "spare"):
        fleet.label(name, home="true")
    web = fake_clusters.a_template("web", nodeSelector={"home": "true"})
    resources = web["spec"]["containers"][0]["resources"]
    resources["requests"] |= {LARGE: "1"}
    resources["limits"] = {LARGE: "1"}
    spare = f"/api/v1/nodes/{ground.name}-spare"
    ground.cordon(f"{ground.name}-spare")  # so that it starts on the node that is changed
    ground.apply(fake_clusters.a_deployment("web", 1, web))
    (first,) = ground.until(lambda: ground.serving("web"))
    ground.call("PATCH", spare, {"spec": {"unschedulable": None}}, MERGE_PATCH)
    assert first["spec"]["nodeName"] == f"{ground.name}-served"

    fleet.managers["fails"].failing.add("slices")
    fleet.managers["unknown"].layouts = {"halves": HALVES}
    fleet.managers["short"].lacking.add("slices")
    plugin = next(
        pod
        for pod in ground.pods("device-plugin")
        if pod["spec"]["nodeName"] == f"{ground.name}-stuck"
    )
    stuck = f"{ground.pods_path}/{plugin['metadata']['name']}"
    held = {"metadata": {"finalizers": ["plimsoll.dev/test"]}}
    assert ground.call("PATCH", stuck, held, MERGE_PATCH).status == 200

    fleet.plan(served="mixed", **dict.fromkeys(NODES[1:], "slices"))

    def ended() -> bool:
        if fleet.step("human") == "changing":
            fleet.label("human", **{MIG: "mixed"})
        return all(fleet.step(name) in ENDED for name in NODES)

    fleet.run(ended)
    assert (fleet.step("served"), fleet.gpus("served")) == ("done", MIXED)
    (replacement,) = ground.until(lambda: ground.serving("web"))
    assert replacement["spec"]["nodeName"] == f"{ground.name}-spare"
    for name in ("fails", "unknown", "short"):
        assert (fleet.step(name), fleet.gpus(name), fleet.in_service(name)) == (
            "stopped",
            HALVES,
            True,
        )
    assert fleet.step("human") == "alert"
    for name in NODES:
        cordoned = fleet.node(name)["spec"].get("unschedulable", False)
        assert fleet.in_service(name) or (cordoned and fleet.step(name) == "alert"), name

    free = {"metadata": {"finalizers": None}}
    ground.call("PATCH", stuck, free, MERGE_PATCH)
