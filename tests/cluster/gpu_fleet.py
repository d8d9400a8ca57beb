"""Nodes of two GPUs on a control plane of their own: real DaemonSets, stand-ins of mig-manager, and the executor.

It comes as plimsoll-gpu with `infra/agent/gpu-apply` in force, and its pods leave as plimsoll-agent. It is a new one in
each round, as after a restart. Only its time-outs are shortened.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import timedelta
from hashlib import sha256
from typing import Any

import yaml

from plimsoll.adapters.clock import SystemClock
from plimsoll.adapters.kubernetes import KubernetesCluster, Response, Transport
from plimsoll.adapters.kubernetes.client import ClientTransport
from plimsoll.adapters.kubernetes.objects import parse_node
from plimsoll.adapters.kubernetes.requests import MERGE_PATCH
from plimsoll.adapters.workers import ThreadWorkers
from plimsoll.domain.errors import Temporary
from plimsoll.domain.kubernetes import GPU, GPU_CHANGE, MIG_STATE, NAMESPACE
from plimsoll_agent.gpu_begin import cordon
from plimsoll_agent.gpu_change import PAUSED, Limits, Look
from plimsoll_agent.gpu_executor import GpuExecutor
from plimsoll_agent.gpu_journal import GpuChange
from plimsoll_agent.gpu_wiring import DRAIN
from plimsoll_cli.gpu.apply_files import grants
from plimsoll_service.wire.documents import decode
from plimsoll_service.wire.gpu_plan import CONFIG_MAP, KEY, parse_plan
from plimsoll_simulation.fake_cluster.conditions import is_ready
from plimsoll_simulation.rigs.mig_manager import MIG, PLUGIN, MigManager
from plimsoll_testbed.rigs.controlplane import ControlPlane
from tests.cluster.conftest import SETTINGS
from tests.cluster.ground import Ground
from tests.cluster.installed import until
from tests.cluster.test_agent import Site, Token
from tests.support import fake_clusters
from tests.support.gpu_nodes import HALVES, LARGE, SLICES, SMALL, WHOLE, Heard, KilledError

type Json = dict[str, Any]

OPERATOR = "gpu-operator"
NODES = "/api/v1/nodes"
CONFIG = "plimsoll-mig-config"
STOPS = "stops"
"""On a node, label: whether its device plugin leaves, `soon` or `never`."""
SPARE = "spare"
"""A node that is not in every plan."""
MIXED = {LARGE: 2, SMALL: 6}
LAYOUTS: dict[str, Mapping[str, int]] = {
    "all-disabled": WHOLE,
    "halves": HALVES,
    "mixed": MIXED,
    "one-whole": {GPU: 1, SMALL: 7},
    "slices": SLICES,
}
FILE = "version: v1\nmig-configs:\n" + "".join(f"  {name}: []\n" for name in LAYOUTS)
ENDED = frozenset({"done", "undone", "stopped", "alert"})


class Wire:
    """A way of the executor to the API server: notes what it writes, and kills it before or after each write."""

    def __init__(self, transport: Transport) -> None:
        self._transport = transport
        self.writes: list[tuple[str, str]] = []
        self.before: Collection[str] = ()
        self.after: Collection[str] = ()
        """It dies at writes to Nodes and pods whose names have one of these in them."""
        self._died: set[str] = set()
        """Before a write to these: it comes through the next time."""

    def call(self, method: str, path: str, **request: Any) -> Response:
        if method == "GET" or path.endswith("accessreviews"):
            return self._transport.call(method, path, **request)
        if path not in self._died and any(name in path for name in self.before):
            self._died.add(path)
            raise KilledError
        self._died.discard(path)
        self.writes.append((method, path))
        answer = self._transport.call(method, path, **request)
        if any(name in path for name in self.after):
            raise KilledError
        return answer


class Watched:
    """The managers' way to the API server: they read Nodes and pods as of the last refresh, as from a watch."""

    def __init__(self, transport: Transport) -> None:
        self._transport = transport
        self._nodes: dict[str, Json] = {}
        self._pods: dict[str, list[Json]] = {}

    def refresh(self) -> None:
        nodes, pods = (
            self._transport.call("GET", path).body["items"] for path in (NODES, "/api/v1/pods")
        )
        self._nodes = {f"{NODES}/{node['metadata']['name']}": node for node in nodes}
        self._pods = {}
        for pod in pods:
            on = f"spec.nodeName={pod['spec'].get('nodeName')}"
            self._pods.setdefault(on, []).append(pod)

    def call(self, method: str, path: str, **request: Any) -> Response:
        if method != "GET":
            return self._transport.call(method, path, **request)
        if path in self._nodes:
            return Response(status=200, body=self._nodes[path])
        if path == "/api/v1/pods":
            items = self._pods.get(request["query"]["fieldSelector"], [])
            return Response(status=200, body={"items": items})
        return Response(status=404, body={})


@dataclass
class Fleet:
    """The nodes with their managers, and the executor."""

    site: Site
    ground: Ground
    names: tuple[str, ...]
    limits: Limits
    stuck: Collection[str] = ()
    """Nodes whose device plugin does not leave."""
    heard: Heard = field(default_factory=Heard)
    managers: dict[str, MigManager] = field(default_factory=dict)
    planned: Mapping[str, str] = field(default_factory=dict)
    seen: dict[str, Json] = field(default_factory=dict)
    """The Nodes as they were looked at last."""
    kills: int = 0

    def __post_init__(self) -> None:
        token, plane, clock = self.site.token("plimsoll-gpu"), self.site.plane, SystemClock()
        labels = {MIG: "all-disabled", MIG_STATE: "success", PLUGIN: "true"}
        self.watched = Watched(plane.transport())
        quick = [name for name in (*self.names, SPARE) if name not in self.stuck]
        joined = [
            *self.ground.nodes(*quick, cpu="64", **{STOPS: "soon"}, **labels),
            *self.ground.nodes(*self.stuck, cpu="64", **{STOPS: "never"}, **labels),
        ]
        for name in joined:
            self.managers[name.removeprefix(f"{self.ground.name}-")] = MigManager(
                transport=self.watched,
                node=name,
                layouts=dict(LAYOUTS),
                gpus=WHOLE,
                applying=timedelta(seconds=1),
            )
        self.look()
        self.uids = {name: node["metadata"]["uid"] for name, node in self.seen.items()}
        self.own, self.drain = (
            Wire(ClientTransport(plane.url, ca=plane.ca, token=Token(token), as_user=user))
            for user in (None, DRAIN)
        )

        def cluster(transport: Transport) -> KubernetesCluster:
            return KubernetesCluster(transport, "harbor", clock, workers=ThreadWorkers(4))

        self.executor: Callable[[], GpuExecutor] = lambda: GpuExecutor(
            api=cluster(self.own),
            drain=cluster(self.drain),
            clock=clock,
            progress=self.heard,
            limits=self.limits,
        )

    def path(self, name: str) -> str:
        return f"{NODES}/{self.ground.name}-{name}"

    def node(self, name: str) -> Json:
        return self.ground.get(self.path(name))

    def patch(self, name: str, body: Json) -> None:
        assert self.ground.call("PATCH", self.path(name), body, MERGE_PATCH).status == 200

    def label(self, name: str, **labels: str) -> None:
        self.patch(name, {"metadata": {"labels": labels}})

    def look(self) -> None:
        """Look at the Nodes."""
        nodes = self.ground.get(NODES)["items"]
        prefix = f"{self.ground.name}-"
        self.seen = {node["metadata"]["name"].removeprefix(prefix): node for node in nodes}

    def gpus(self, name: str) -> Mapping[str, int]:
        return gpus_of(self.seen[name])

    def step(self, name: str) -> str:
        """Return how far the plan as it is now has come with a Node; of an alert only one after which nothing is tried."""
        if name not in self.seen:
            return "gone"
        change = self.change(name)
        if change is None or change.target != self.planned[name]:
            return "none"
        return "retries" if change.step == "alert" and not change.final else change.step

    def change(self, name: str) -> GpuChange | None:
        """Return the journal of a Node."""
        text = self.seen[name]["metadata"].get("annotations", {}).get(GPU_CHANGE)
        return None if text is None else decode(text.encode(), GpuChange)

    def plan(self, layouts: Mapping[str, str], *, paused: bool = False) -> None:
        self.planned = layouts
        nodes = [
            {
                "name": f"{self.ground.name}-{name}",
                "uid": self.uids[name],
                "value": value,
                "allocatable": LAYOUTS[value],
            }
            for name, value in layouts.items()
        ]
        source = {"namespace": OPERATOR, "name": CONFIG, "key": "config.yaml"}
        digest = sha256(FILE.encode()).hexdigest()
        plan = {"config": source | {"sha256": digest}, "nodes": nodes, "paused": paused}
        self._plan = json.dumps(plan | {"nodes_per_hour": 100})
        config_map(self.ground, NAMESPACE, CONFIG_MAP, {KEY: self._plan})

    def begin(self, *names: str) -> None:
        """Cordon nodes of the plan at once, as an executor does that is allowed to: it takes them one by one."""
        plan = parse_plan(self._plan)
        known = {entry.name: entry for entry in plan.nodes}
        for name in names:
            look = Look(node=parse_node(self.node(name)))
            begun = cordon(look, known[look.node.name], plan.config, SystemClock().now())
            self.executor()._write(look.node, begun)

    def managed(self) -> None:
        self.watched.refresh()
        for manager in self.managers.values():
            manager.step(SystemClock().now())

    def run(
        self,
        ended: Callable[[], bool],
        seconds: float = 150,
        then: Callable[[], object] = lambda: None,
    ) -> None:
        """Let managers and executor work, and do something after each round; no Node may be open then without its GPUs."""
        end = time.monotonic() + seconds
        self.look()
        while not ended():
            steps = {name: self.step(name) for name in self.names}
            assert time.monotonic() < end, (steps, self.heard.lines[-5:], self.heard.warnings[-5:])
            self.managed()
            self.round()
            self.look()
            for name in self.names:
                assert name not in self.seen or self.cordoned(name) or self.gpus(name), name
            then()

    def round(self) -> None:
        try:
            self.executor().round()
        except KilledError:
            self.kills += 1
        except Temporary as error:
            self.heard.warn("a round failed", because=str(error))

    def in_service(self, name: str) -> bool:
        node = self.seen[name]
        labels = node["metadata"]["labels"]
        return (
            is_ready(node)
            and not self.cordoned(name)
            and PAUSED not in labels.values()
            and gpus_of(node) == LAYOUTS[labels[MIG]]
        )

    def cordoned(self, name: str) -> bool:
        return bool(self.seen[name]["spec"].get("unschedulable"))

    def plugin(self, name: str) -> str:
        """Return the path of the pod of the device plugin on a node."""
        stops = self.seen[name]["metadata"]["labels"][STOPS]
        pods = self.ground.pods(f"device-plugin-{stops}")
        here = f"{self.ground.name}-{name}"
        pod = next(pod for pod in pods if pod["spec"]["nodeName"] == here)
        return f"{self.ground.pods_path}/{pod['metadata']['name']}"

    def hold(self, pod: str, *, on: bool) -> None:
        """Keep a pod from going, or let it go."""
        held = {"metadata": {"finalizers": ["plimsoll.dev/test"] if on else None}}
        assert self.ground.call("PATCH", pod, held, MERGE_PATCH).status == 200

    def serve(self, app: str, gpu: str, name: str) -> None:
        """Let a pod with a GPU serve on a node; the other that it may run on is the spare one."""
        home = f"home-{app}"
        for node in (name, SPARE):
            self.label(node, **{home: "true"})
        template = fake_clusters.a_template(app, nodeSelector={home: "true"})
        resources = template["spec"]["containers"][0]["resources"]
        resources["requests"] |= {gpu: "1"}
        resources["limits"] = {gpu: "1"}
        self.ground.cordon(f"{self.ground.name}-{SPARE}")  # so that it starts on the other
        self.ground.apply(fake_clusters.a_deployment(app, 1, template))
        (first,) = self.ground.until(lambda: self.ground.serving(app))
        self.patch(SPARE, {"spec": {"unschedulable": None}})
        assert first["spec"]["nodeName"] == f"{self.ground.name}-{name}"


def gpus_of(node: Json) -> Mapping[str, int]:
    amounts = node["status"]["allocatable"].items()
    return {k: int(n) for k, n in amounts if k.startswith("nvidia.com/") and n != "0"}


def config_map(ground: Ground, namespace: str, name: str, data: Mapping[str, str]) -> None:
    path = f"/api/v1/namespaces/{namespace}/configmaps"
    if ground.call("GET", f"{path}/{name}").status == 200:
        assert ground.call("PATCH", f"{path}/{name}", {"data": data}, MERGE_PATCH).status == 200
    else:
        ground.create(path, {"metadata": {"name": name}, "data": data})


@contextmanager
def a_fleet(*names: str, limits: Limits, stuck: Collection[str] = ()) -> Iterator[Fleet]:
    """Start a control plane with nodes that show their whole GPUs, and wait until the policies hold."""
    with ControlPlane(settings=SETTINGS) as plane, Ground(plane) as ground:
        site = Site(plane)
        ground.create("/api/v1/namespaces", {"metadata": {"name": OPERATOR}})
        site.apply("act")
        site.apply("gpu-apply")
        for document in yaml.safe_load_all(grants(LAYOUTS)):
            kind = f"{document['kind'].lower()}s"
            ground.create(f"/apis/rbac.authorization.k8s.io/v1/{kind}", document)
        config_map(ground, OPERATOR, CONFIG, {"config.yaml": FILE})
        fleet = Fleet(site, ground, names, limits, stuck)
        for stops, after in (("soon", "0.5s"), ("never", "10h")):
            template = fake_clusters.a_template(
                f"device-plugin-{stops}",
                annotations={"stop": after},
                nodeSelector={PLUGIN: "true", STOPS: stops},
                tolerations=[{"operator": "Exists"}],
                terminationGracePeriodSeconds=36000,
            )
            ground.apply(fake_clusters.a_daemon_set(f"device-plugin-{stops}", template))

        def shown() -> bool:
            fleet.managed()
            return all(gpus_of(fleet.node(name)) == WHOLE for name in fleet.managers)

        until(shown)
        agent = site.agent("plimsoll-gpu")
        foreign = {"metadata": {"labels": {"team": "red"}}}
        until(
            lambda: (
                agent.call(
                    "PATCH",
                    fleet.path(SPARE),
                    query={"dryRun": "All"},
                    body=foreign,
                    content_type=MERGE_PATCH,
                ).status
                == 403
            )
        )
        yield fleet
