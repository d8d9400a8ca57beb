"""A fake cluster with GPU nodes, NVIDIA's operands as DaemonSets, a stand-in of mig-manager, and our executor."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import datetime, timedelta
from hashlib import sha256
from typing import Any

from plimsoll.adapters.kubernetes import KubernetesCluster, Response
from plimsoll.adapters.kubernetes.objects import parse_node, parse_pod
from plimsoll.adapters.workers import SerialWorkers
from plimsoll.domain.errors import Temporary
from plimsoll.domain.interruptions import Interruption, NoticeRecord, to_record
from plimsoll.domain.kubernetes import (
    GPU,
    GPU_CHANGE,
    INTERRUPTION,
    MIG_STATE,
    NAMESPACE,
    RELEASED,
)
from plimsoll.domain.reports import Metric
from plimsoll_agent.gpu_begin import holds_gpus
from plimsoll_agent.gpu_change import LIMITS, Limits
from plimsoll_agent.gpu_executor import GpuExecutor
from plimsoll_agent.gpu_journal import GpuChange
from plimsoll_service.wire.documents import decode
from plimsoll_service.wire.gpu_plan import CONFIG_MAP, KEY
from plimsoll_simulation.fake_cluster.cluster import FakeCluster
from plimsoll_simulation.fake_cluster.conditions import is_ready, with_condition
from plimsoll_simulation.fake_cluster.edits import look
from plimsoll_simulation.fake_cluster.settings import Settings
from plimsoll_simulation.fake_cluster.transport import FakeTransport
from plimsoll_simulation.rigs.mig_manager import DEPLOY, MIG, PLUGIN, SHARING, MigManager
from tests.support import fake_clusters
from tests.support.builders import NOON

SMALL = "nvidia.com/mig-1g.10gb"
LARGE = "nvidia.com/mig-3g.40gb"
WHOLE = {GPU: 2}
SLICES = {SMALL: 14}
HALVES = {LARGE: 4}
LAYOUTS = {"all-disabled": WHOLE, "all-1g.10gb": SLICES, "all-3g.40gb": HALVES}
FILE = "version: v1\nmig-configs:\n" + "".join(f"  {name}: []\n" for name in LAYOUTS)
STEP = timedelta(seconds=5)

type Json = dict[str, Any]


class KilledError(BaseException):
    """The executor's process has ended."""


class Wire:
    """The executor's way to the cluster, which may kill it before or after a write."""

    def __init__(self, transport: FakeTransport) -> None:
        self._transport = transport
        self.writes: list[tuple[str, str, Any]] = []
        self.kill: tuple[int, bool] | None = None
        """Before (False) or after (True) which write it dies."""
        self.ungranted: set[str] = set()
        """Names of layouts that the owner does not grant."""

    def call(self, method: str, path: str, **request: Any) -> Response:
        if path.endswith("accessreviews"):
            name = request["body"]["spec"]["resourceAttributes"]["name"]
            return Response(status=201, body={"status": {"allowed": name not in self.ungranted}})
        if method == "GET":
            return self._transport.call(method, path, **request)
        dies = self.kill is not None and self.kill[0] == len(self.writes)
        if dies and self.kill is not None and not self.kill[1]:
            self.kill = None
            raise KilledError
        request["body"] = json.loads(json.dumps(request.get("body")))
        answer = self._transport.call(method, path, **request)
        self.writes.append((method, path, request["body"]))
        if dies:
            self.kill = None
            raise KilledError
        return answer


class Heard:
    """What people and Prometheus heard."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        self.warnings: list[str] = []
        self.alerts = 0

    def log(self, message: str, **facts: object) -> None:
        self.lines.append(f"{message} {facts}")

    def warn(self, message: str, **facts: object) -> None:
        self.warnings.append(f"{message} {facts}")

    def once(self, line: str) -> None:
        if line not in self.lines:
            self.lines.append(line)

    def count(self, metric: Metric, value: float = 1, *, cluster: str | None = None) -> None: ...

    def gpu_alerts(self, nodes: int) -> None:
        self.alerts = nodes


class Clock:
    """The time of the cluster."""

    def __init__(self, time: datetime) -> None:
        self.time = time

    def now(self) -> datetime:
        return self.time

    def sleep(self, seconds: float) -> None:
        self.time += timedelta(seconds=seconds)


class GpuSite:
    """A cluster with one node of two GPUs that is to be split, and room elsewhere."""

    def __init__(
        self,
        *,
        seed: int = 0,
        wanted: str = "all-1g.10gb",
        nodes: tuple[str, ...] = ("gpu-1",),
        limits: Limits = LIMITS,
        plugin_stops: str = "3s",
    ) -> None:
        self.clock, self.heard, self.limits = Clock(NOON - timedelta(hours=1)), Heard(), limits
        self.cluster = FakeCluster(now=self.clock.time, seed=seed, settings=Settings())
        self.transport = FakeTransport(self.cluster, self.clock)
        self.wire = Wire(self.transport)
        self.managers: dict[str, MigManager] = {}
        self.due = self.clock.time
        self._stepped: dict[str, object] = {}
        """What each manager has seen: where nothing changed since, it would do nothing."""
        self.watch: Callable[[], object] = lambda: None
        """Called after each moment."""
        for name in (NAMESPACE, "gpu-operator"):
            self.apply({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}})
        for operand in ("device-plugin", "dcgm-exporter"):
            self.apply(_operand(operand, plugin_stops))
        self.config(FILE)
        for name in (*nodes, "spare"):
            self.join(name)
        self.settle()
        self.plan(*(self.entry(name, wanted) for name in nodes))

    # what stands in the cluster

    def join(self, name: str, layout: str = "all-disabled") -> None:
        labels = {
            MIG: layout,
            MIG_STATE: "success",
            f"{DEPLOY}device-plugin": "true",
            f"{DEPLOY}dcgm-exporter": "true",
        }
        self.cluster.join(fake_clusters.a_node(name, cpu="64", **labels), now=self.clock.time)
        self.managers[name] = MigManager(
            transport=self.transport, node=name, layouts=dict(LAYOUTS), gpus=LAYOUTS[layout]
        )

    @property
    def manager(self) -> MigManager:
        return self.managers["gpu-1"]

    def apply(self, *manifests: Json) -> None:
        self.cluster.apply(manifests, now=self.clock.time)

    def config(self, text: str, key: str = "config.yaml") -> None:
        meta = {"name": "mig-config", "namespace": "gpu-operator"}
        self.apply({"apiVersion": "v1", "kind": "ConfigMap", "metadata": meta, "data": {key: text}})

    def source(self, **more: str) -> Json:
        known = {"namespace": "gpu-operator", "name": "mig-config", "key": "config.yaml"}
        return known | {"sha256": sha256(FILE.encode()).hexdigest()} | more

    def entry(self, name: str, value: str = "all-1g.10gb", **more: Any) -> Json:
        uid = self.node(name)["metadata"]["uid"]
        return {
            "name": name,
            "uid": uid,
            "value": value,
            "allocatable": LAYOUTS.get(value, {}),
        } | more

    def plan(self, *entries: Json, **more: Any) -> None:
        document = {"config": self.source(), "nodes": entries} | more
        self.plan_text(json.dumps(document))

    def plan_text(self, text: str) -> None:
        meta = {"name": CONFIG_MAP, "namespace": NAMESPACE}
        data = {KEY: text}
        self.apply({"apiVersion": "v1", "kind": "ConfigMap", "metadata": meta, "data": data})

    def patch(self, body: Json, name: str = "gpu-1", part: str = "") -> None:
        now, path = self.clock.time, f"/api/v1/nodes/{name}{part}"
        answer = self.cluster.handle("PATCH", path, {}, body, fake_clusters.MERGE, now=now)
        assert answer.status == 200, answer.body

    def label(self, name: str = "gpu-1", **labels: str | None) -> None:
        known = {"mig": MIG, "plugin": PLUGIN, "sharing": SHARING, "state": MIG_STATE}
        self.patch({"metadata": {"labels": {known[k]: v for k, v in labels.items()}}}, name)

    def annotate(self, **annotations: str | None) -> None:
        self.patch({"metadata": {"annotations": annotations}})

    def taint(self, *taints: Json) -> None:
        """Add taints to the node; the cordon's stays."""
        known = look(self.node(), "spec", "taints", default=[])
        kept = [t for t in known if t["key"] == "node.kubernetes.io/unschedulable"]
        self.patch({"spec": {"taints": [*kept, *taints]}})

    def interrupt(self, name: str = "gpu-1") -> None:
        """Record an interruption on a Node, as a deployed Plimsoll does."""
        self.patch({"metadata": {"annotations": noticed(self.node(name), self.clock.time)}}, name)

    def delete(self, pod: str) -> None:
        path = f"/api/v1/namespaces/default/pods/{pod}"
        self.cluster.handle("DELETE", path, {}, None, now=self.clock.time)
        self.settle()

    def make_ready(self, *, on: bool) -> None:
        """Let the node be Ready, or not."""
        node = with_condition(self.node(), "Ready", "True" if on else "False", now=self.clock.time)
        self.patch({"status": {"conditions": node["status"]["conditions"]}}, part="/status")

    def serve_whole_and_ask_for_slices(self, layout: str = "all-1g.10gb") -> None:
        """Let `web` serve on a whole GPU of gpu-1, and its template ask for a slice that no node has yet."""
        slices = dict.fromkeys(LAYOUTS[layout], 1)
        self.cordon(on=True, name="spare")
        self.apply(fake_clusters.a_deployment("web", 1, gpu_template("web", {GPU: 1})))
        self.settle()
        self.apply(fake_clusters.a_deployment("web", 1, gpu_template("web", slices)))
        self.settle()

    def cordon(self, *, on: bool, name: str = "gpu-1") -> None:
        self.patch({"spec": {"unschedulable": on or None}}, name)

    def starve(self, node: str) -> None:
        """Keep the pods with GPUs of a node from becoming Ready."""
        for pod in self.cluster.store.all("pods"):
            here = pod["spec"].get("nodeName") == node and "web" in pod["metadata"]["name"]
            if here and is_ready(pod):
                broken = with_condition(pod, "Ready", "False", now=self.clock.time)
                self.cluster.store.replace("pods", broken, now=self.clock.time)

    def delete_all(self, app: str) -> None:
        path = f"/apis/apps/v1/namespaces/default/deployments/{app}"
        self.cluster.handle("DELETE", path, {}, None, now=self.clock.time)
        self.settle()

    def released(self) -> list[str]:
        """The pods that were released, and still are."""
        pods = self.cluster.store.all("pods")
        return [
            p["metadata"]["name"] for p in pods if RELEASED in p["metadata"].get("annotations", {})
        ]

    # what is seen

    def node(self, name: str = "gpu-1") -> Json:
        found: Json = self.cluster.store.must_get("nodes", "", name)
        return found

    def exists(self, name: str = "gpu-1") -> bool:
        return self.cluster.store.get("nodes", "", name) is not None

    def labels(self, name: str = "gpu-1") -> dict[str, str]:
        found: dict[str, str] = self.node(name)["metadata"]["labels"]
        return found

    def gpus(self, name: str = "gpu-1") -> dict[str, int]:
        amounts = look(self.node(name), "status", "allocatable", default={})
        return {k: int(v) for k, v in amounts.items() if k.startswith("nvidia.com/") and v != "0"}

    def cordoned(self, name: str = "gpu-1") -> bool:
        return bool(look(self.node(name), "spec", "unschedulable"))

    def ready(self, name: str = "gpu-1") -> bool:
        return is_ready(self.node(name))

    def change(self, name: str = "gpu-1") -> GpuChange | None:
        text = look(self.node(name), "metadata", "annotations", default={}).get(GPU_CHANGE)
        return None if text is None else decode(text.encode(), GpuChange)

    def step_of(self, name: str = "gpu-1") -> str:
        change = self.change(name)
        return "none" if change is None else change.step

    def plugin_runs(self, name: str = "gpu-1") -> bool:
        return any("device-plugin" in p for p in self.on(name))

    def on(self, name: str = "gpu-1", app: str = "") -> list[str]:
        pods = self.cluster.store.all("pods")
        here = (p for p in pods if p["spec"].get("nodeName") == name)
        return [n for p in here if (n := str(p["metadata"]["name"])).startswith(app)]

    def alerted(self, name: str = "gpu-1") -> bool:
        """Whether it needs a person, and the metric says so."""
        return self.step_of(name) == "alert" and self.heard.alerts > 0

    def holders(self, name: str = "gpu-1") -> list[str]:
        """The pods on a node that hold GPUs."""
        here = (p for p in self.cluster.store.all("pods") if p["spec"].get("nodeName") == name)
        return [str(pod) for pod in map(parse_pod, here) if holds_gpus(pod)]

    # what happens

    @property
    def executor(self) -> GpuExecutor:
        """A new one each time, as after a restart."""

        def cluster() -> KubernetesCluster:
            return KubernetesCluster(self.wire, "harbor", self.clock, workers=SerialWorkers())

        return GpuExecutor(
            api=cluster(),
            drain=cluster(),
            clock=self.clock,
            progress=self.heard,
            limits=self.limits,
        )

    def settle(self) -> None:
        """Let everything but the executor come to rest."""
        for _ in range(12):
            self.pass_(STEP)

    def pass_(self, span: timedelta) -> None:
        self.clock.time += span
        self.cluster.step(self.clock.time)
        for name, manager in self.managers.items():
            known = manager.up, manager._read, dict(manager.gpus)
            seen = self.cluster.store.revision, *known
            if manager.busy or self._stepped.get(name) != seen:
                manager.step(self.clock.time)
                self._stepped[name] = seen
        self.cluster.step(self.clock.time)

    def round(self) -> None:
        """One round of the executor; it may be killed in it, or not reach the cluster."""
        try:
            pause = self.executor.round()
        except (Temporary, KilledError):
            pause = STEP.total_seconds()
        self.due = self.clock.time + timedelta(seconds=pause)

    def run(self, minutes: float, until: Callable[[], bool] = lambda: False) -> bool:
        """Let time pass; return whether what was waited for came."""
        end = self.clock.time + timedelta(minutes=minutes)
        while self.clock.time < end:
            if until():
                return True
            if self.clock.time >= self.due:
                self.round()
                self.watch()
            self.pass_(STEP)
            self.watch()
        return until()

    def ended(self) -> bool:
        return self.step_of() in {"done", "undone", "stopped", "alert"}


def noticed(node: Json, now: datetime) -> dict[str, str]:
    """Return the annotation by which a deployed Plimsoll records an interruption of a Node."""
    known = parse_node(node)
    notice = NoticeRecord(kind="spot", time=now, id="n-1")
    found = Interruption(
        instance=known.instance or "", launched=known.created, node=known.name, notices=(notice,)
    )
    return {INTERRUPTION: to_record(found)}


def gpu_template(app: str, gpus: dict[str, int], **spec: Any) -> Json:
    """A template whose pods ask for GPUs, and prefer nothing."""
    template = fake_clusters.a_template(app, **spec)
    requests = template["spec"]["containers"][0]["resources"]["requests"]
    requests |= {name: str(n) for name, n in gpus.items()}
    return template


def gpu_pod(name: str, gpus: dict[str, int], node: str = "gpu-1", **spec: Any) -> Json:
    """A bare pod on a node, past the scheduler."""
    template = gpu_template(name, gpus, **spec)
    template["spec"]["nodeName"] = node
    return fake_clusters.a_pod(name, template)


def _operand(name: str, stops: str) -> Json:
    grace = {"terminationGracePeriodSeconds": 36000} if stops != "3s" else {}
    template = fake_clusters.a_template(
        name,
        annotations={"stop": stops, "startup": "5s"},
        nodeSelector={f"{DEPLOY}{name}": "true"},
        tolerations=[{"operator": "Exists"}],
    )
    template["spec"] |= grace
    manifest = fake_clusters.a_daemon_set(f"nvidia-{name}", template)
    manifest["spec"]["selector"] = {"matchLabels": {"app": name}}
    return manifest
