"""A workload of a storm as plain values, and its manifests."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from plimsoll.domain.kubernetes import CAPACITY_LABELS, GUARD, HOSTNAME, IGNORE, STOP_SECONDS
from plimsoll_simulation.fake_cluster.pod_annotations import RESIZE, RUN, STARTUP, STOP, USAGE

type Json = dict[str, Any]

ROLLED: Final = frozenset({"Deployment", "StatefulSet"})
"""Kinds whose controller replaces the pods when the template changes."""
SCALED: Final = frozenset({"Deployment", "ReplicaSet", "StatefulSet"})
"""Kinds whose count an owner may change."""
DEVICE: Final = "example.com/chip"
"""An extended resource."""
CUSTOM: Final = "Database"
"""A custom resource, of whose controller nobody knows the rules."""
_API: Final = {"Job": "batch/v1", "Pod": "v1"}
TARGET_PERCENT: Final = 50
"""Of the CPU that its pods request: what an autoscaler aims at."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Workload:
    """A workload, with its budget, its autoscaler and its volumes."""

    kind: str
    name: str
    replicas: int
    """For a Job how many pods it runs side by side; a bare Pod is one."""
    cpu: int
    grace_seconds: int
    stop_seconds: int
    startup_seconds: int
    strategy: str = "RollingUpdate"
    max_surge: int | str = "25%"
    max_unavailable: int | str = "25%"
    budget: tuple[str, int | str] | None = None
    """A field of a PodDisruptionBudget, and its value."""
    volumes: bool = False
    """Each of its pods has a claim of its own, which one node at a time can mount."""
    shared: bool = False
    """Its pods share a claim, which every node can mount."""
    parallel: bool = False
    spread: str | None = None
    """The topology key over which its pods are spread."""
    apart: bool = False
    """No two of its pods on a node, by pod anti-affinity."""
    soft: bool = False
    """Whether spread and anti-affinity are preferences."""
    autoscaled: tuple[int, int] | None = None
    """The bounds of a HorizontalPodAutoscaler."""
    usage_percent: int = TARGET_PERCENT
    """What each of its pods uses of the CPU that it requests."""
    operated: bool = False
    """A custom resource is its controlling owner, and sets it back."""
    ignored: bool = False
    """It has opted out."""
    guarded: bool = False
    """Its owner lets nobody evict its pods before they are replaced."""
    stated: bool = False
    """Its owner states how long its pods take to stop."""
    hook_seconds: int | None = None
    """How long a preStop hook sleeps, out of the time that its pods take to stop."""
    sidecar_cpu: int = 0
    """What a native sidecar of each of its pods requests."""
    resized_cpu: int = 0
    """What a vertical pod autoscaler lets each of its pods request in place; 0 for what it requests."""
    devices: int = 0
    """How many devices each of its pods requests."""
    held: bool = False
    """A finalizer holds its pods when they have ended, and nobody takes it off."""
    priority: int = 0
    on_demand: bool = False
    """It runs on on-demand nodes only."""
    nodes: tuple[str, ...] = ()
    """Where its pods stand at time 0, one for each; the scheduler places those that are not named."""
    run_seconds: int | None = None
    """After how long its pods finish by themselves; None for never."""

    @property
    def real_stop_seconds(self) -> int:
        """How long its pods take to stop: at the end of the grace period the kubelet kills what is left."""
        return min(self.stop_seconds, self.grace_seconds)

    def rendered(self, *, generation: int = 0) -> list[Json]:
        """Return its objects, itself first; another generation is another pod template."""
        if self.kind == CUSTOM:
            objects = [o for number in range(self.replicas) for o in self._member(number)]
        else:
            objects = [self._object(generation)]
        if self.shared:
            objects.insert(0, _claim(self.name, "ReadWriteMany"))
        if self.budget is not None:
            field, value = self.budget
            spec: Json = {field: value, "selector": {"matchLabels": {"app": self.name}}}
            objects.append(self._beside("policy/v1", "PodDisruptionBudget", spec))
        if self.autoscaled is not None:
            least, most = self.autoscaled
            target = {"apiVersion": "apps/v1", "kind": self.kind, "name": self.name}
            goal = {"type": "Utilization", "averageUtilization": TARGET_PERCENT}
            metric = {"type": "Resource", "resource": {"name": "cpu", "target": goal}}
            spec = {"scaleTargetRef": target, "minReplicas": least, "maxReplicas": most}
            spec["metrics"] = [metric]
            objects.append(self._beside("autoscaling/v2", "HorizontalPodAutoscaler", spec))
        return objects

    def bindings(self, there: Collection[str]) -> Mapping[str, Sequence[str]]:
        """Return where its pods stand at time 0, as a scenario says it, on nodes that are there."""
        nodes = [node for node in self.nodes[: self.replicas] if node in there]
        if self.kind in {"StatefulSet", CUSTOM}:
            return {f"Pod/default/{self.name}-{n}": [node] for n, node in enumerate(nodes)}
        return {f"{self.kind}/default/{self.name}": nodes} if nodes else {}

    def rolled(self, generation: int) -> Json:
        """Return what its owner's tool sends for another pod template.

        It leaves the count to an autoscaler.
        """
        sent = self._object(generation)
        if self.autoscaled is not None:
            del sent["spec"]["replicas"]
        return sent

    def _beside(self, version: str, kind: str, spec: Json) -> Json:
        return {"apiVersion": version, "kind": kind, "metadata": {"name": self.name}, "spec": spec}

    def _member(self, number: int) -> Iterator[Json]:
        """Yield a pod of a custom resource, and its claim."""
        name, template = f"{self.name}-{number}", self._template(0)
        if self.volumes:
            yield _claim(name, "ReadWriteOnce")
            template["spec"]["volumes"] = [_volume(name)]
        metadata = {"name": name, **self._owner(), **template["metadata"]}
        yield {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": template["spec"]}

    def _owner(self) -> Json:
        """Return the reference to a custom resource, as metadata has it."""
        named = {"apiVersion": "example.com/v1", "kind": CUSTOM, "name": self.name}
        return {"ownerReferences": [{**named, "uid": f"uid-of-{self.name}", "controller": True}]}

    def _object(self, generation: int) -> Json:
        metadata: Json = {"name": self.name, **(self._owner() if self.operated else {})}
        if self.guarded:
            metadata["labels"] = {GUARD: "true"}
        template = self._template(generation)
        if self.kind == "Pod":
            spec = template["spec"]
            metadata |= template["metadata"]
        else:
            spec = {**self._spec(), "template": template}
        version = _API.get(self.kind, "apps/v1")
        return {"apiVersion": version, "kind": self.kind, "metadata": metadata, "spec": spec}

    def _spec(self) -> Json:
        """Return the spec, but for the template."""
        if self.kind == "Job":
            return {"parallelism": self.replicas, "completions": self.replicas, "backoffLimit": 100}
        spec: Json = {"selector": {"matchLabels": {"app": self.name}}}
        if self.kind == "DaemonSet":
            return spec
        spec["replicas"] = self.replicas
        if self.kind == "Deployment":
            spec["strategy"] = {"type": self.strategy}
            if self.strategy == "RollingUpdate":
                spec["strategy"]["rollingUpdate"] = {
                    "maxSurge": self.max_surge,
                    "maxUnavailable": self.max_unavailable,
                }
        if self.kind == "StatefulSet":
            spec["serviceName"] = self.name
            spec["podManagementPolicy"] = "Parallel" if self.parallel else "OrderedReady"
            if self.volumes:
                claim = _claim("data", "ReadWriteOnce")
                spec["volumeClaimTemplates"] = [{k: claim[k] for k in ("metadata", "spec")}]
        return spec

    def _template(self, generation: int) -> Json:
        metadata: Json = {"labels": {"app": self.name}}
        metadata["annotations"] = self._annotations(generation)
        if self.held:
            metadata["finalizers"] = ["example.com/held"]
        return {"metadata": metadata, "spec": {**self._pod_spec(), **self._where()}}

    def _annotations(self, generation: int) -> dict[str, str]:
        annotations = {STARTUP: f"{self.startup_seconds}s", STOP: f"{self.stop_seconds}s"}
        if self.run_seconds is not None:
            annotations[RUN] = f"{self.run_seconds}s"
        if self.autoscaled is not None:
            annotations[USAGE] = f"{self.usage_percent}%"
        if self.resized_cpu:
            annotations[RESIZE] = f"{self.resized_cpu}m"
        if self.ignored:
            annotations[IGNORE] = "true"
        if self.stated:
            annotations[STOP_SECONDS] = str(self.stop_seconds)
        if generation:
            annotations["generation"] = str(generation)
        return annotations

    def _pod_spec(self) -> Json:
        """Return the spec of a pod, but for where it may stand."""
        container: Json = {
            "name": "main",
            "image": f"example/{self.name}",
            "resources": {"requests": {"cpu": f"{self.cpu}m"}},
        }
        if self.devices:
            devices = {DEVICE: str(self.devices)}
            requests = container["resources"]["requests"] | devices
            container["resources"] = {"requests": requests, "limits": devices}
        if self.hook_seconds is not None:
            container["lifecycle"] = {"preStop": {"sleep": {"seconds": self.hook_seconds}}}
        pod: Json = {
            "terminationGracePeriodSeconds": self.grace_seconds,
            "containers": [container],
        }
        if self.sidecar_cpu:
            sidecar = {"name": "proxy", "image": "example/proxy", "restartPolicy": "Always"}
            requests = {"requests": {"cpu": f"{self.sidecar_cpu}m"}}
            pod["initContainers"] = [{**sidecar, "resources": requests}]
        if self.kind == "Job":
            pod["restartPolicy"] = "Never"
        if self.shared:
            pod["volumes"] = [_volume(self.name)]
        if self.priority:
            pod["priorityClassName"] = priority_class(self.priority)["metadata"]["name"]
        return pod

    def _where(self) -> Json:
        """Return the part of a pod's spec that says where it may stand."""
        where: Json = {}
        mine = {"matchLabels": {"app": self.name}}
        if self.on_demand:
            where["nodeSelector"] = {CAPACITY_LABELS[0]: "on-demand"}
        if self.spread is not None:
            where["topologySpreadConstraints"] = [
                {
                    "maxSkew": 1,
                    "topologyKey": self.spread,
                    "whenUnsatisfiable": "ScheduleAnyway" if self.soft else "DoNotSchedule",
                    "labelSelector": mine,
                }
            ]
        if self.apart:
            where["affinity"] = {"podAntiAffinity": self._apart(mine)}
        return where

    def _apart(self, mine: Json) -> Json:
        term = {"topologyKey": HOSTNAME, "labelSelector": mine}
        if self.soft:
            preferred = {"weight": 100, "podAffinityTerm": term}
            return {"preferredDuringSchedulingIgnoredDuringExecution": [preferred]}
        return {"requiredDuringSchedulingIgnoredDuringExecution": [term]}


def priority_class(value: int) -> Json:
    """Return the class of a priority."""
    return {
        "apiVersion": "scheduling.k8s.io/v1",
        "kind": "PriorityClass",
        "metadata": {"name": f"priority-{value}" if value >= 0 else f"balloons{value}"},
        "value": value,
    }


def _claim(name: str, mode: str) -> Json:
    spec = {"accessModes": [mode], "resources": {"requests": {"storage": "10Gi"}}}
    return {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": {"name": name},
        "spec": spec,
    }


def _volume(claim: str) -> Json:
    return {"name": "data", "persistentVolumeClaim": {"claimName": claim}}
