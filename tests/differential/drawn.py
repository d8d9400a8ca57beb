"""Pods and nodes drawn by chance, with every field that decides whether one fits on the other.

A case is some nodes, the pods that stand on them, and one pod that waits. Its topology keys, values and namespaces
are its own, so any number of cases may share one cluster.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from random import Random
from typing import Any, Final

from plimsoll_simulation.fake_cluster.controllers.volumes import DRIVER
from tests.differential.bench import FOREVER, HOST, ZONE, Bench
from tests.differential.scenario import Json
from tests.differential.sides import OF

AREA: Final = "area"
"""A label of nodes by which storage classes restrict."""
_APPS: Final = ("red", "green", "blue")
HARD: Final = "requiredDuringSchedulingIgnoredDuringExecution"
_SOFT: Final = "preferredDuringSchedulingIgnoredDuringExecution"
_CHIP: Final = "example.com/chip"
_OF_WAITING: Final = ("held", "held", "class", "class", "other", "shared")
"""Kinds of volumes of a pod that waits."""


def _shared(group: str, kind: str, name: str, **more: Any) -> Json:
    return {"apiVersion": f"{group}/v1", "kind": kind, "metadata": {"name": name}, **more}


_SCHEDULING: Final = ("scheduling.k8s.io", "PriorityClass")
SHARED: Final = (
    _shared(*_SCHEDULING, "low", value=-5),
    _shared(*_SCHEDULING, "high", value=9),
    _shared(*_SCHEDULING, "patient", value=9, preemptionPolicy="Never"),
    _shared(*_SCHEDULING, "top", value=99),
    _shared(
        "node.k8s.io",
        "RuntimeClass",
        "heavy",
        handler="heavy",
        overhead={"podFixed": {"cpu": "250m", "memory": "64Mi"}},
    ),
)
"""What all cases share."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """Objects in the order in which they are created; the pod that waits comes last of all."""

    name: str
    objects: tuple[Json, ...]
    pod: Json

    @property
    def nodes(self) -> list[Json]:
        return [obj for obj in self.objects if obj["kind"] == "Node"]


def pair(seed: int) -> Case:
    """Return one node with pods, and a pod."""
    return _Drawn(f"pair-{seed}").case(nodes=1)


def cluster(seed: int) -> Case:
    """Return a handful of nodes with pods, and a pod."""
    drawn = _Drawn(f"cluster-{seed}")
    return drawn.case(nodes=drawn.chance.randint(2, 5))


class _Drawn:
    def __init__(self, name: str) -> None:
        self.chance = Random(name)
        self.bench = Bench(name, "drawn")
        self.name = name
        self.rack = f"rack-{name}"
        self.zones = [f"{name}-{letter}" for letter in "ab"]
        self.mode = self.one("ReadWriteOnce", "ReadWriteOncePod", "ReadWriteMany")
        self.few = self.one(0.2, 0.4, 0.6, 1)
        self.objects: list[Json] = []
        self.nodes: list[str] = []
        self.claims: list[str] = []
        """Names of claims that pods with a node have."""

    def case(self, nodes: int) -> Case:
        for letter in "ab":
            labels = {OF: self.name, "team": self.chance.choice("xy")}
            self.add(
                {
                    "apiVersion": "v1",
                    "kind": "Namespace",
                    "metadata": {"name": f"{self.name}-{letter}", "labels": labels},
                }
            )
        for number in range(nodes):
            self.node(number)
        for number in range(self.chance.randint(0, 3 * nodes)):
            self.bound(number)
        pod = self.waiting()
        return Case(name=self.name, objects=tuple(self.objects), pod=pod)

    def odds(self, share: float) -> bool:
        return self.chance.random() < share

    def demands(self, share: float) -> bool:
        """Draw a demand; in some cases there are few of them, so that what is left decides."""
        return self.odds(share * self.few)

    def one(self, *of: Any) -> Any:
        return self.chance.choice(of)

    def add(self, obj: Json) -> Json:
        self.objects.append(obj)
        return obj

    # Nodes

    def node(self, number: int) -> None:
        name = f"{self.name}-n{number}"
        self.nodes.append(name)
        labels = {OF: self.name, HOST: name, "disk": self.one("ssd", "hdd")}
        labels |= {"gen": self.one("1", "3", "7", "1_0", "x")} if self.odds(0.8) else {}
        labels |= {ZONE: self.chance.choice(self.zones)} if self.odds(0.9) else {}
        labels |= {self.rack: self.one("x", "y")} if self.odds(0.8) else {}
        labels |= {AREA: self.one("east", "north", "west")} if self.odds(0.7) else {}
        room = {"cpu": self.one("1", "2", "4"), "memory": self.one("1Gi", "4Gi")}
        room |= {"pods": self.one("4", "20")} if self.odds(0.97) else {}
        room |= {_CHIP: self.one("1", "2")} if self.odds(0.4) else {}
        room |= {"ephemeral-storage": "10Gi"} if self.odds(0.6) else {}
        room |= {"hugepages-2Mi": "4Mi"} if self.odds(0.3) else {}
        spec: Json = {"taints": [self.taint()]} if self.demands(0.4) else {}
        spec |= {"unschedulable": True} if self.odds(0.07) else {}
        self.add(
            {
                "apiVersion": "v1",
                "kind": "Node",
                "metadata": {"name": name, "labels": labels},
                "spec": spec,
                "status": {"allocatable": room, "capacity": room},
            }
        )
        if self.odds(0.3):
            driver: Json = {"name": DRIVER, "nodeID": name, "topologyKeys": None}
            driver |= {"allocatable": {"count": self.one(1, 2, 3)}} if self.odds(0.9) else {}
            self.add(
                {
                    "apiVersion": "storage.k8s.io/v1",
                    "kind": "CSINode",
                    "metadata": {"name": name},
                    "spec": {"drivers": [driver]},
                }
            )

    def taint(self) -> Json:
        value = {"value": self.one("spot", "batch")} if self.odds(0.8) else {}
        effect = self.one("NoSchedule", "NoSchedule", "NoExecute", "PreferNoSchedule")
        return {"key": self.one("pool", "team"), "effect": effect, **value}

    # Pods

    def bound(self, number: int) -> None:
        node = self.chance.choice(self.nodes)
        state: Json = self.one({}, {}, {}, {"stop": FOREVER}, {"run": "0.1s"}, {"held": True})
        # With a volume a pod starts late, and its kubelet would write over what it holds.
        spec = self.spec({}, bound=True, claims=not {"run", "held"} & {*state})
        spec |= {"nodeName": node, "tolerations": [{"operator": "Exists"}]}
        spec |= (
            {"affinity": {"podAntiAffinity": {HARD: [self.pod_term()]}}}
            if self.demands(0.2)
            else {}
        )
        if "stop" in state:  # whom it preempts, it waits for
            spec["priorityClassName"] = "top"
        elif self.odds(0.2):
            spec["priorityClassName"] = "low"
        spec |= {"restartPolicy": "Never"} if "run" in state else {}
        self.pod(f"bound-{number}", "a" if spec["volumes"] else self.one("a", "b"), spec, state)

    def waiting(self) -> Json:
        spec: Json = {"affinity": self.affinity()}
        if self.demands(0.15):
            spec["nodeSelector"] = {"disk": self.one("ssd", "hdd")}
        if self.demands(0.5):
            spec["tolerations"] = [self.toleration() for _ in range(self.one(1, 1, 2))]
        if self.demands(0.35):
            keys = self.chance.sample([HOST, ZONE, self.rack], self.one(1, 1, 2))
            spec["topologySpreadConstraints"] = [self.spread(key) for key in keys]
        if self.demands(0.3):
            spec["priorityClassName"] = self.one("low", "patient", "patient", "high")
        if self.demands(0.04):
            spec["schedulingGates"] = [{"name": "example.com/closed"}]
        if self.demands(0.02):
            spec["schedulerName"] = "other"
        if self.demands(0.03):
            spec["resourceClaims"] = [{"name": "device", "resourceClaimName": self.device()}]
        spec = self.spec(spec, bound=False)
        self.pod("waits", "a", spec, {})
        return self.objects.pop()

    def affinity(self) -> Json:
        affinity: Json = {}
        if self.demands(0.3):
            terms = [self.node_term() for _ in range(self.one(1, 1, 2))]
            affinity["nodeAffinity"] = {HARD: {"nodeSelectorTerms": terms}}
        elif self.demands(0.1):
            soft = [{"weight": 5, "preference": self.node_term()}]
            affinity["nodeAffinity"] = {_SOFT: soft}
        for kind, share in (("podAffinity", 0.25), ("podAntiAffinity", 0.25)):
            if self.demands(share):
                affinity[kind] = {HARD: [self.pod_term() for _ in range(self.one(1, 1, 2))]}
        return affinity

    def pod(self, name: str, letter: str, spec: Json, state: Json) -> None:
        labels = {"app": self.chance.choice(_APPS)} if self.odds(0.9) else {}
        labels |= {"tier": self.one("one", "two")} if self.odds(0.7) else {}
        template = self.bench.template("app", cpu="", startup="0.1s", **spec)
        annotations = template["metadata"]["annotations"]
        annotations |= {f"drill.plimsoll.dev/{k}": v for k, v in state.items() if k != "held"}
        meta = {"labels": labels | {OF: self.name}, "annotations": annotations}
        obj = self.bench.object("Pod", name, metadata=meta, spec=template["spec"])
        obj["metadata"]["namespace"] = f"{self.name}-{letter}"
        if "held" in state:
            cpu = {"cpu": self.one("10m", "300m", "900m")}
            held = self.one(
                {"allocatedResources": cpu},
                {"resources": {"requests": cpu}},
                {"allocatedResources": cpu, "resources": None},
            )
            if (
                Random(f"{self.name} {name}").random() < 0.3
            ):  # apart, so that seeds stay as they are
                held = {"allocatedResources": cpu, "resources": {"requests": cpu}}
                pending = {"type": "PodResizePending", "status": "True", "reason": "Infeasible"}
                obj["status"] = {"conditions": [pending]}
            obj.setdefault("status", {})["containerStatuses"] = [{"name": "main", **held}]
        self.add(obj)

    def spec(self, spec: Json, *, bound: bool, claims: bool = True) -> Json:
        """Add what containers and volumes are about."""
        whole = self.demands(0.2)  # the requests of a pod as a whole are at least the sum
        small = bound or whole or not self.demands(0.4)
        main: Json = {"name": "main", "image": "one", "resources": self.requests(small=small)}
        if self.demands(0.3):
            spec["hostNetwork"] = self.odds(0.3)
            main["ports"] = [self.port(on_host=spec["hostNetwork"])]
        containers: list[Json] = [main]
        if self.odds(0.2):
            containers.append(
                {"name": "more", "image": "one", "resources": self.requests(small=True)}
            )
        inits: list[Json] = []
        for number in range(self.one(0, 0, 0, 1, 2)):
            init: Json = {
                "name": f"init-{number}",
                "image": "one",
                "resources": self.requests(small=small),
            }
            init |= {"restartPolicy": "Always"} if self.odds(0.5) else {}
            init |= {"ports": [self.port(on_host=False)]} if not number and self.odds(0.3) else {}
            inits.append(init)
        if self.odds(0.1):
            spec["runtimeClassName"] = "heavy"
        if whole:
            spec["resources"] = {"requests": {"cpu": self.one("2", "3")}}
        spec["volumes"] = list(self.volumes(bound=bound)) if self.demands(0.4) and claims else []
        return spec | {"containers": containers, "initContainers": inits}

    def port(self, *, on_host: bool) -> Json:
        number = self.one(80, 8080)
        port = {"containerPort": number, "protocol": self.one("TCP", "TCP", "UDP")}
        if not on_host:
            port["hostPort"] = number
        if self.odds(0.5):
            port["hostIP"] = self.one("0.0.0.0", "127.0.0.1", "10.0.0.1", "::")
        return port

    def requests(self, *, small: bool) -> Json:
        scale = ("50m", "100m", "300m") if small else ("500m", "900m", "2", "4")
        found: Json = {"cpu": self.chance.choice(scale)} if self.odds(0.7) else {}
        found |= {"memory": self.one("64Mi", "100M", "700Mi")} if self.odds(0.5) else {}
        found |= {"ephemeral-storage": self.one("1Gi", "6Gi")} if self.odds(0.1) else {}
        extra: Json = {_CHIP: self.one("1", "1", "2", "0")} if self.odds(0.1) else {}
        extra |= {"hugepages-2Mi": "2Mi"} if self.odds(0.05) and "cpu" in found else {}
        if self.odds(0.1):  # a limit without a request is one
            return {"limits": {"cpu": "400m", **extra}}
        return {"requests": found | extra, "limits": extra}

    def toleration(self) -> Json:
        shape: Json = self.one(
            {"key": "pool", "operator": "Equal", "value": "spot"},
            {"key": "pool", "operator": "Exists"},
            {"key": "pool", "value": "batch", "effect": "NoSchedule"},
            {"key": "team", "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 60},
            {"key": "team", "value": ""},
            {"operator": "Exists"},
            {"operator": "Exists", "effect": "NoSchedule"},
            {"key": "node.kubernetes.io/unschedulable", "operator": "Exists"},
        )
        return shape

    def node_term(self) -> Json:
        expression: Json = self.one(
            {"key": "disk", "operator": "In", "values": ["ssd"]},
            {"key": "disk", "operator": "NotIn", "values": ["ssd"]},
            {"key": "gen", "operator": "Gt", "values": [self.one("2", "0", "6")]},
            {"key": "gen", "operator": "Lt", "values": [self.one("4", "0", "8")]},
            {"key": ZONE, "operator": "Exists"},
            {"key": self.rack, "operator": "DoesNotExist"},
            {"key": "missing", "operator": "NotIn", "values": ["any"]},
            {"key": ZONE, "operator": "In", "values": self.zones},
        )
        field = {
            "key": "metadata.name",
            "operator": self.one("In", "NotIn"),
            "values": [self.chance.choice(self.nodes)],
        }
        both: Json = {"matchExpressions": [expression], "matchFields": [field]}
        kept = self.one(["matchExpressions"], ["matchExpressions"], ["matchFields"], [*both], [])
        return {key: both[key] for key in kept}

    def selector(self) -> Json | None:
        shape: Json | None = self.one(
            {"matchLabels": {"app": self.chance.choice(_APPS)}},
            {"matchLabels": {"app": self.chance.choice(_APPS)}},
            {"matchExpressions": [{"key": "app", "operator": "In", "values": ["red", "green"]}]},
            {"matchExpressions": [{"key": "app", "operator": "NotIn", "values": ["red"]}]},
            {"matchExpressions": [{"key": "tier", "operator": "Exists"}]},
            {"matchExpressions": [{"key": "tier", "operator": "DoesNotExist"}]},
            {},
            None,
        )
        return shape

    def pod_term(self) -> Json:
        term: Json = {"topologyKey": self.one(HOST, ZONE, self.rack)}
        selector = self.selector()
        if selector is not None:  # pods of other cases come and go
            labels = selector.get("matchLabels", {}) | {OF: self.name}
            term["labelSelector"] = selector | {"matchLabels": labels}
            if self.odds(0.2) and "tier" not in str(selector):
                term[self.one("matchLabelKeys", "mismatchLabelKeys")] = ["tier"]
        if self.odds(0.2):
            term["namespaces"] = self.chance.sample([f"{self.name}-{x}" for x in "ab"], 1)
        if self.odds(0.3):
            # No NotIn and DoesNotExist: kube-scheduler 1.36 takes them for every namespace, since
            # mergeAffinityTermNamespacesIfNotEmpty puts Nothing into a copy of the term.
            term["namespaceSelector"] = self.one(
                {},
                {"matchLabels": {"team": "x"}},
                {"matchExpressions": [{"key": "team", "operator": "In", "values": ["y", "z"]}]},
                {"matchLabels": {"kubernetes.io/metadata.name": f"{self.name}-b"}},
            )
        return term

    def spread(self, key: str) -> Json:
        hard = self.odds(0.8)
        constraint: Json = {
            "maxSkew": self.one(1, 1, 2),
            "topologyKey": key,
            "whenUnsatisfiable": "DoNotSchedule" if hard else "ScheduleAnyway",
        }
        selector = self.selector()
        if selector is not None:
            constraint["labelSelector"] = selector
            if self.odds(0.3) and "tier" not in str(selector):
                constraint["matchLabelKeys"] = ["tier"]
        if hard and self.odds(0.3):
            constraint["minDomains"] = self.chance.randint(1, 4)
        for policy in ("nodeTaintsPolicy", "nodeAffinityPolicy"):
            # With Ignore the nodes of other cases count too, but for those without its rack.
            if self.odds(0.3) and (key == self.rack or policy == "nodeTaintsPolicy"):
                constraint[policy] = self.one("Honor", "Ignore")
        return constraint

    # What pods claim

    def device(self) -> str:
        self.add(
            {
                "apiVersion": "resource.k8s.io/v1",
                "kind": "ResourceClaim",
                "metadata": {"name": "device", "namespace": f"{self.name}-a"},
                "spec": {},
            }
        )
        return "device"

    def volumes(self, *, bound: bool) -> Iterator[Json]:
        """Yield volumes of a pod; those of a pod that has a node are bound."""
        for number in range(self.one(1, 1, 2)):
            volume = f"v{number}"
            kinds = ("held", "held", "ephemeral") if bound else _OF_WAITING
            kind = self.one(*kinds)
            if kind == "other":
                kind = self.one("missing", "ephemeral", "lost")
            match kind:
                case "ephemeral":
                    template = {"spec": self.claim_spec(self.storage_class())}
                    yield {"name": volume, "ephemeral": {"volumeClaimTemplate": template}}
                    continue
                case "missing":
                    name = "missing"
                case "shared" if self.claims:
                    name = self.chance.choice(self.claims)
                case "lost":
                    name = self.claim("", volumeName=f"{self.name}-nothing")
                case "class":
                    named = self.storage_class() if self.odds(0.9) else "nowhere"
                    name = self.claim(named)
                    if self.odds(0.5):
                        self.volume(named)
                case _:
                    name = self.claim("", volumeName=self.volume(""))
                    self.claims.append(name)
            yield {"name": volume, "persistentVolumeClaim": {"claimName": name}}

    def storage_class(self) -> str:
        """Make a class: its volumes are made in some places, must be there, or nobody makes them."""
        name = f"class-{self.name}-{len(self.objects)}"
        kind = self.one("made", "made", "made", "local", "stuck")
        by = {"made": DRIVER, "local": "kubernetes.io/no-provisioner", "stuck": "example.com/none"}
        mode = "Immediate" if kind == "stuck" else "WaitForFirstConsumer"
        more: Json = {"provisioner": by[kind], "volumeBindingMode": mode}
        if kind == "made" and self.odds(0.6):
            lines = [
                {"key": AREA, "values": ["east", self.one("north", "south")]},
                {"key": ZONE, "values": self.chance.sample(self.zones, 1)},
            ]
            terms = self.chance.sample([lines, lines[:1], lines[1:]], self.one(1, 1, 2))
            more["allowedTopologies"] = [{"matchLabelExpressions": term} for term in terms]
        self.add(_shared("storage.k8s.io", "StorageClass", name, **more))
        return name

    def claim_spec(self, named: str, **more: Any) -> Json:
        storage = {"requests": {"storage": "1Gi"}}
        return {
            "accessModes": [self.mode],
            "storageClassName": named,
            "resources": storage,
            **more,
        }

    def claim(self, named: str, **more: Any) -> str:
        """Make a claim in the namespace of the pod that waits."""
        name = f"data-{len(self.objects)}"
        obj = self.bench.object("PersistentVolumeClaim", name, spec=self.claim_spec(named, **more))
        obj["metadata"]["namespace"] = f"{self.name}-a"
        self.add(obj)
        return name

    def volume(self, named: str) -> str:
        """Make a volume that a claim may have."""
        name = f"{self.name}-{len(self.objects)}"
        spec = {
            "accessModes": [self.mode],
            "capacity": {"storage": self.one("1Gi", "1Gi", "500Mi") if named else "1Gi"},
            "csi": {"driver": DRIVER, "volumeHandle": name},
            "storageClassName": named,
            "persistentVolumeReclaimPolicy": "Retain",
        }
        if self.odds(0.6):
            terms = [self.volume_term() for _ in range(self.one(1, 1, 2))]
            spec["nodeAffinity"] = {"required": {"nodeSelectorTerms": terms}}
        obj = self.bench.object("PersistentVolume", name, spec=spec)
        if self.odds(0.2):
            obj["metadata"]["labels"][ZONE] = self.one(*self.zones, "__".join(self.zones))
        self.add(obj)
        return name

    def volume_term(self) -> Json:
        lines = [
            {"key": ZONE, "operator": "In", "values": self.chance.sample(self.zones, 1)},
            {"key": "disk", "operator": "NotIn", "values": ["ssd"]},
            {"key": self.rack, "operator": "Exists"},
            {"key": "gen", "operator": "Gt", "values": ["2"]},
            {"key": HOST, "operator": "In", "values": [self.chance.choice(self.nodes)]},
        ]
        return {"matchExpressions": self.chance.sample(lines, self.one(1, 1, 2))}
