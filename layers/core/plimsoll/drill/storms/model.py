"""A storm: a small drill as plain values, easy to draw, to take things out of, and to write down.

What it renders is the scenario and the manifests that anybody could have written by hand.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Final

from plimsoll.drill.manifestchecks import STARTUP, STOP

type Json = dict[str, Any]

CLUSTER: Final = "harbor"
MANIFESTS: Final = "workloads.yaml"
HORIZON_SECONDS: Final = 900
GITOPS: Final = "argocd-controller"
"""The field manager of workloads whose count a GitOps tool owns."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Group:
    """A node group."""

    name: str
    kind: str
    capacity: str
    zones: tuple[str, ...]
    size: int
    most: int
    startup_seconds: int
    cpu: int
    """Of one node, in millicores."""

    def rendered(self) -> Json:
        """Return it as a scenario says it."""
        return {
            "name": self.name,
            "kind": self.kind,
            "capacity": self.capacity,
            "instanceType": "m6i.xlarge" if self.capacity == "on-demand" else f"{self.name}.xlarge",
            "zones": list(self.zones),
            "size": self.size,
            "max": self.most,
            "startup": f"{self.startup_seconds}s",
            "allocatable": {"cpu": f"{self.cpu}m", "memory": "16Gi", "pods": 30},
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class Workload:
    """A workload, with its budget and its volumes."""

    kind: str
    name: str
    replicas: int
    cpu: int
    grace_seconds: int
    stop_seconds: int
    startup_seconds: int
    strategy: str = "RollingUpdate"
    max_surge: int | str = "25%"
    max_unavailable: int | str = "25%"
    budget: tuple[str, int | str] | None = None
    """A field of a PodDisruptionBudget, and its value."""
    gitops: bool = False
    volumes: bool = False
    parallel: bool = False
    spread: str | None = None
    """The topology key over which its pods are spread, without exception."""

    def rendered(self, *, generation: int = 0) -> list[Json]:
        """Return its objects; another generation is another pod template."""
        objects = [self._object(generation)]
        if self.budget is not None:
            field, value = self.budget
            objects.append(
                {
                    "apiVersion": "policy/v1",
                    "kind": "PodDisruptionBudget",
                    "metadata": {"name": self.name},
                    "spec": {field: value, "selector": {"matchLabels": {"app": self.name}}},
                }
            )
        return objects

    def _object(self, generation: int) -> Json:
        metadata: Json = {"name": self.name}
        if self.gitops:
            metadata["managedFields"] = [
                {
                    "manager": GITOPS,
                    "operation": "Update",
                    "apiVersion": "apps/v1",
                    "fieldsType": "FieldsV1",
                    "fieldsV1": {"f:spec": {"f:replicas": {}}},
                }
            ]
        spec: Json = {
            "selector": {"matchLabels": {"app": self.name}},
            "template": self._template(generation),
        }
        match self.kind:
            case "Deployment":
                spec["replicas"] = self.replicas
                spec["strategy"] = {"type": self.strategy}
                if self.strategy == "RollingUpdate":
                    spec["strategy"]["rollingUpdate"] = {
                        "maxSurge": self.max_surge,
                        "maxUnavailable": self.max_unavailable,
                    }
            case "StatefulSet":
                spec["replicas"] = self.replicas
                spec["serviceName"] = self.name
                spec["podManagementPolicy"] = "Parallel" if self.parallel else "OrderedReady"
                if self.volumes:
                    spec["volumeClaimTemplates"] = [
                        {
                            "metadata": {"name": "data"},
                            "spec": {
                                "accessModes": ["ReadWriteOnce"],
                                "resources": {"requests": {"storage": "10Gi"}},
                            },
                        }
                    ]
            case _:
                pass
        return {"apiVersion": "apps/v1", "kind": self.kind, "metadata": metadata, "spec": spec}

    def _template(self, generation: int) -> Json:
        annotations = {STARTUP: f"{self.startup_seconds}s", STOP: f"{self.stop_seconds}s"}
        if generation:
            annotations["generation"] = str(generation)
        pod: Json = {
            "terminationGracePeriodSeconds": self.grace_seconds,
            "containers": [
                {
                    "name": "main",
                    "image": f"example/{self.name}",
                    "resources": {"requests": {"cpu": f"{self.cpu}m"}},
                }
            ],
        }
        if self.spread is not None:
            pod["topologySpreadConstraints"] = [
                {
                    "maxSkew": 1,
                    "topologyKey": self.spread,
                    "whenUnsatisfiable": "DoNotSchedule",
                    "labelSelector": {"matchLabels": {"app": self.name}},
                }
            ]
        return {
            "metadata": {"labels": {"app": self.name}, "annotations": annotations},
            "spec": pod,
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class Notices:
    """Notices about nodes of a group."""

    at: int
    notice: str
    group: str
    count: int
    spread_seconds: int = 0
    reclaim_seconds: int | None = None
    state: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Fault:
    """Something that is broken for a while."""

    at: int
    fault: str
    seconds: int
    more: tuple[tuple[str, str | float], ...] = ()
    """Its other fields, as a scenario names them."""
    group: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Rescale:
    """The owner declares another count."""

    at: int
    workload: str
    replicas: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Rollout:
    """The owner applies another pod template."""

    at: int
    workload: str


type Event = Notices | Fault | Rescale | Rollout


@dataclass(frozen=True, slots=True, kw_only=True)
class Storm:
    """A drill of one cluster."""

    seed: int
    groups: tuple[Group, ...]
    workloads: tuple[Workload, ...]
    events: tuple[Event, ...]

    @property
    def name(self) -> str:
        """The name of its drill."""
        return f"storm-{self.seed}"

    @property
    def nodes(self) -> int:
        """How many nodes it starts with."""
        return sum(group.size for group in self.groups)

    def workload(self, name: str) -> Workload:
        """Return a workload by name."""
        return next(w for w in self.workloads if w.name == name)

    def files(self) -> dict[str, list[Json]]:
        """Return the documents of each file: `drill.yaml` and what it names."""
        files = {MANIFESTS: [o for w in self.workloads for o in w.rendered()]}
        timeline = []
        for number, event in enumerate(self.events):
            entry = self._entry(event, number)
            if isinstance(event, Rollout):
                rolled = self._at(event).rendered(generation=number + 1)[:1]
                # The owner's tool sends what it knows: not who manages which field.
                rolled[0]["metadata"].pop("managedFields", None)
                files[entry["apply"]] = rolled
            timeline.append(entry)
        scenario: Json = {
            "apiVersion": "plimsoll.dev/v1",
            "kind": "Drill",
            "metadata": {"name": self.name},
            "spec": {
                "seed": self.seed,
                "horizon": f"{HORIZON_SECONDS}s",
                "clusters": [
                    {
                        "name": CLUSTER,
                        "nodeGroups": [group.rendered() for group in self.groups],
                        "manifests": [MANIFESTS],
                    }
                ],
                "timeline": timeline,
            },
        }
        return {"drill.yaml": [scenario], **files}

    def _at(self, event: Rollout) -> Workload:
        """Return a workload as its owner last scaled it: a rollout does not change the count."""
        found = self.workload(event.workload)
        for other in self.events:
            if isinstance(other, Rescale) and other.workload == found.name and other.at <= event.at:
                found = replace(found, replicas=other.replicas)
        return found

    def _entry(self, event: Event, number: int) -> Json:
        entry: Json = {"at": f"{event.at}s"}
        match event:
            case Notices():
                entry |= {
                    "notice": event.notice,
                    "nodes": {"group": event.group, "count": event.count},
                }
                if event.spread_seconds:
                    entry["spread"] = f"{event.spread_seconds}s"
                if event.reclaim_seconds is not None:
                    entry["reclaim"] = f"{event.reclaim_seconds}s"
                if event.state is not None:
                    entry["state"] = event.state
            case Fault():
                entry |= {"fault": event.fault, "for": f"{event.seconds}s", **dict(event.more)}
                if event.group is not None:
                    entry["nodes"] = {"group": event.group}
            case Rescale():
                kind = self.workload(event.workload).kind
                entry["scale"] = {"kind": kind, "name": event.workload, "replicas": event.replicas}
            case Rollout():
                entry["apply"] = f"rollout-{number + 1}.yaml"
        return entry
