"""A cluster with one hostile tenant: every field that he can write, filled with what hurts most.

`shop` is what must not notice: its plan is the same with the tenant's object and without it.
"""

from __future__ import annotations

import copy
import json
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from datetime import timedelta
from random import Random
from typing import Any

from plimsoll.adapters.kubernetes import KubernetesCluster, Response, calls
from plimsoll.adapters.workers import SerialWorkers
from plimsoll.domain.actions import LabelNode, Release
from plimsoll.domain.drain import plan_drain
from plimsoll.domain.interruptions import Interruption, NoticeRecord, to_record
from plimsoll.domain.kubernetes import (
    DELETION_COST,
    INTERRUPTION,
    MIN_ON_DEMAND,
    RELEASED,
    STOP_SECONDS,
    Node,
)
from plimsoll.domain.observation import Observation
from plimsoll.domain.placement import Layout, label_key, plan_placement
from tests.support.builders import (
    NOON,
    budget_json,
    claim_json,
    deployment_json,
    node_json,
    pod_json,
    pod_spec_json,
    replica_set_json,
    stateful_set_json,
    volume_json,
)

type Json = dict[str, Any]

TENANT, SHOP = "tenant", "shop"
TENANTS_NODE = "tenants-node"
SHOPS_NODES = {"m5-0": "spot-1", "m5-1": "spot-1", "c5-0": "spot-2", "od-1": "on-demand"}
"""Those of a cluster with spread groups, and the group of each."""
SPREAD_OVER = Layout(1, 2)
"""Spot groups of the shop. The tenant may make groups of other numbers, with labels of their own."""
CALLS = {
    "Node": calls.LIST_NODES,
    "Pod": calls.LIST_PODS,
    "Deployment": calls.LIST_DEPLOYMENTS,
    "ReplicaSet": calls.LIST_REPLICA_SETS,
    "StatefulSet": calls.LIST_STATEFUL_SETS,
    "PodDisruptionBudget": calls.LIST_BUDGETS,
    "PersistentVolumeClaim": calls.LIST_CLAIMS,
    "PersistentVolume": calls.LIST_VOLUMES,
    "HorizontalPodAutoscaler": calls.LIST_SCALERS,
    "VolumeAttachment": calls.LIST_ATTACHMENTS,
    "Service": calls.LIST_SERVICES,
    "NetworkPolicy": calls.LIST_NETWORK_POLICIES,
    "ResourceQuota": calls.LIST_QUOTAS,
}
KIND_AT = {call.path(): kind for kind, call in CALLS.items()}
_SELECTOR = {"matchLabels": {"app": "web"}, "matchExpressions": [
    {"key": "app", "operator": "In", "values": ["web"]}
]}  # fmt: skip
_TERM = {
    "topologyKey": "kubernetes.io/hostname",
    "labelSelector": _SELECTOR,
    "namespaces": [TENANT],
}
_REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
_NODE_TERM = {"matchExpressions": [{"key": "size", "operator": "Gt", "values": ["1"]}]}
_SPREAD: Json = {
    "maxSkew": 1,
    "whenUnsatisfiable": "DoNotSchedule",
    "labelSelector": _SELECTOR,
    "minDomains": 1,
    "matchLabelKeys": ["pod-template-hash"],
}
TEMPLATE: Json = {
    "affinity": {
        "nodeAffinity": {_REQUIRED: {"nodeSelectorTerms": [_NODE_TERM]}},
        "podAffinity": {_REQUIRED: []},
        "podAntiAffinity": {_REQUIRED: [_TERM]},
    },
    "topologySpreadConstraints": [_SPREAD | {"topologyKey": "kubernetes.io/hostname"}],
    "tolerations": [{"key": "a", "operator": "Equal", "value": "b", "effect": "NoSchedule"}],
    "nodeSelector": {"size": "2"},
    "overhead": {"cpu": "1m"},
    "initContainers": [
        {"name": "i", "restartPolicy": "Always", "resources": {"limits": {"cpu": "1m"}}}
    ],
    "volumes": [{"name": "v", "persistentVolumeClaim": {"claimName": "data"}}],
}
"""What a pod spec can say of its place."""


def _meta(name: str, namespace: str | None = TENANT) -> Json:
    meta: Json = {"name": name, "uid": f"{namespace}-{name}", "resourceVersion": "1"}
    return meta | ({"namespace": namespace} if namespace else {})


def _pods(
    namespace: str, name: str, owner: tuple[str, str], nodes: list[str], **how: Any
) -> list[Json]:
    return [
        pod_json(
            f"{name}-{n}", namespace=namespace, node=node, labels={"app": name}, owner=owner, **how
        )
        for n, node in enumerate(nodes)
    ]


def _replica_set(namespace: str, name: str) -> Json:
    owned = replica_set_json(
        f"{name}-abc", namespace=namespace, labels={"pod-template-hash": "abc"}
    )
    owned["metadata"]["ownerReferences"] = [
        {
            "apiVersion": "apps/v1",
            "kind": "Deployment",
            "name": name,
            "uid": f"deployment-{namespace}-{name}",
            "controller": True,
        }
    ]
    return owned


def _record() -> str:
    notice = NoticeRecord(
        kind="spot-interruption", time=NOON, id="event", ends=NOON + timedelta(seconds=120)
    )
    return to_record(
        Interruption(
            instance=node_json("spot")["spec"]["providerID"].rpartition("/")[2],
            launched=None,
            node="spot",
            notices=(notice,),
            cordoned=NOON,
        )
    )


def of_shop() -> dict[str, list[Json]]:
    """Return what the tenant must not touch: a node is going, with pods of a shop on it."""
    web, db = ("ReplicaSet", "web-abc"), ("StatefulSet", "db")
    return {
        "Node": [
            node_json(
                "spot", capacity="spot", annotations={INTERRUPTION: _record()}, unschedulable=True
            ),
            node_json("od-1", cpu="64", memory="256Gi"),
            node_json("od-2", cpu="64", memory="256Gi"),
        ],
        "Pod": [
            *_pods(SHOP, "web", web, ["spot", "spot", "od-1", "od-2"]),
            *_pods(SHOP, "db", db, ["spot", "od-1"]),
            *_pods(SHOP, "once", ("Job", "once"), ["spot"], restartPolicy="Never"),
        ],
        "Deployment": [deployment_json("web", namespace=SHOP, replicas=4)],
        "ReplicaSet": [_replica_set(SHOP, "web")],
        "StatefulSet": [stateful_set_json("db", namespace=SHOP, replicas=2)],
        "PodDisruptionBudget": [budget_json("web", namespace=SHOP, maxUnavailable=1, allowed=1)],
    }


def of_spread_shop() -> dict[str, list[Json]]:
    """Return what the tenant must not touch: spread groups, and a shop on its way back to spot."""
    key = label_key(SPREAD_OVER)
    spread: Json = {"topologySpreadConstraints": [_SPREAD | {"topologyKey": key}]}
    pods = _pods(
        SHOP,
        "web",
        ("ReplicaSet", "web-abc"),
        ["od-1", "od-1", "od-1", "od-1", "m5-0", "c5-0"],
        **spread,
    )
    for pod in pods[:4]:
        pod["metadata"]["annotations"] = {DELETION_COST: "1000"}
    return {
        "Node": [
            node_json(
                name,
                capacity="on-demand" if group == "on-demand" else "spot",
                labels={"node.kubernetes.io/instance-type": f"{name[:2]}.large", key: group},
            )
            for name, group in SHOPS_NODES.items()
        ],
        "Pod": pods,
        "Deployment": [
            deployment_json(
                "web",
                namespace=SHOP,
                replicas=6,
                annotations={MIN_ON_DEMAND: "2"},
                template=pod_spec_json(**spread),
            )
        ],
        "ReplicaSet": [_replica_set(SHOP, "web")],
    }


def of_tenant() -> dict[str, list[Json]]:
    """Return one of each kind that a tenant writes, with as many fields as are read."""
    web, db = ("ReplicaSet", "web-abc"), ("StatefulSet", "db")
    target = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"}
    spread = pod_spec_json(
        **TEMPLATE
        | {"topologySpreadConstraints": [_SPREAD | {"topologyKey": label_key(SPREAD_OVER)}]}
    )
    floor = {MIN_ON_DEMAND: "1"}
    return {
        "Node": [
            node_json(
                TENANTS_NODE,
                labels={"size": "2", "topology.kubernetes.io/zone": "us-east-1a"},
                annotations={INTERRUPTION: _record(), "other": "x"},
                taints=[{"key": "a", "value": "b", "effect": "NoSchedule"}],
            )
        ],
        "Pod": [
            *_pods(
                TENANT,
                "web",
                web,
                ["spot", TENANTS_NODE],
                annotations={STOP_SECONDS: "5"},
                **TEMPLATE,
            ),
            *_pods(TENANT, "db", db, ["spot"]),
        ],
        "Deployment": [
            deployment_json("web", namespace=TENANT, replicas=2, annotations=floor, template=spread)
        ],
        "ReplicaSet": [_replica_set(TENANT, "web")],
        "StatefulSet": [
            stateful_set_json(
                "db", namespace=TENANT, replicas=1, annotations=floor, template=spread
            )
        ],
        "PodDisruptionBudget": [
            budget_json("web", namespace=TENANT, minAvailable="50%", allowed=1)
        ],
        "PersistentVolumeClaim": [claim_json("data", namespace=TENANT, volume="pv-1")],
        "PersistentVolume": [volume_json("pv-1")],
        "HorizontalPodAutoscaler": [{"metadata": _meta("web"), "spec": {"scaleTargetRef": target}}],
        "VolumeAttachment": [
            {
                "metadata": _meta("attached", None),
                "spec": {"nodeName": TENANTS_NODE, "source": {"persistentVolumeName": "pv-1"}},
                "status": {"attached": True},
            }
        ],
        "Service": [{"metadata": _meta("web"), "spec": {"selector": {"app": "web"}}}],
        "NetworkPolicy": [{"metadata": _meta("web"), "spec": {"podSelector": _SELECTOR}}],
        "ResourceQuota": [
            {
                "metadata": _meta("quota"),
                "status": {
                    "hard": {"pods": "10", "requests.cpu": "4", "memory": "8Gi"},
                    "used": {"pods": "2", "requests.cpu": "1"},
                },
            }
        ],
    }


# What hurts


def _nested(depth: int = 100_000) -> Any:
    found: Any = []
    for _ in range(depth):
        found = [found]
    return found


DIGITS = "9" * 5000
VALUES: tuple[Callable[[], Any], ...] = (
    lambda: None,
    dict,
    list,
    _nested,
    lambda: {"a": _nested()},
    lambda: "[" * 100_000,
    lambda: "",
    lambda: DIGITS,
    lambda: f"{DIGITS}%",
    lambda: "999999999%",
    lambda: "-1%",
    lambda: "²",
    lambda: "1e400",
    lambda: "1e-999",
    lambda: "-5",
    lambda: "\ud800",
    lambda: "\u202e\x00\U0001f4a5",
    lambda: "0001-01-01T00:00:00+23:59",
    lambda: "9999-12-31T23:59:59-23:59",
    lambda: "2026-01-02T12:00:00",
    lambda: "true",
    lambda: 10**5000,
    lambda: 2**63 - 1,
    lambda: -(2**63),
    lambda: 2**31 - 1,
    lambda: -1,
    lambda: 0,
    lambda: 1.5,
    lambda: float("inf"),
    lambda: float("nan"),
    lambda: True,
)
"""Made anew at each use: nested lists are better not copied."""
SMALL = 9
"""From here on they are small."""


def places(value: Any) -> Iterator[tuple[Any, Any]]:
    """Yield every (container, key) of an object."""
    keys = value.keys() if isinstance(value, dict) else range(len(value))
    for key in list(keys):
        yield value, key
        if isinstance(value[key], dict | list):
            yield from places(value[key])


def mutated(random: Random) -> tuple[str, Json]:
    """Return the kind and one of the tenant's objects, with up to three fields that hurt.

    Only the first may be large: an API server takes 1.5 MiB, and what is large twice is more.
    """
    kind = random.choice(sorted(CALLS))
    obj = copy.deepcopy(random.choice(of_tenant()[kind]))
    found = list(places(obj))
    for number in range(random.choice((1, 1, 1, 2, 3))):
        container, key = random.choice(found)
        how = random.randrange(4)
        if how == 0 and isinstance(container, dict):
            container.pop(key, None)
        elif how == 1 and isinstance(container, list) and not number:
            container *= 10_000 // len(container)
        else:
            container[key] = random.choice(VALUES[number and SMALL :])()
    return kind, obj


def _set(kind: str, path: str, value: Any, which: int = 0) -> tuple[str, Json]:
    obj = copy.deepcopy(of_tenant()[kind][which])
    *parents, last = path.split("/")
    found: Any = obj
    for part in parents:
        found = found[int(part)] if isinstance(found, list) else found.setdefault(part, {})
    found[int(last) if isinstance(found, list) else last] = value
    return kind, obj


def _cycle(kind: str, name: str) -> list[Json]:
    """Return 10,000 owners, of which each is the object itself."""
    return [
        {
            "apiVersion": "v1",
            "kind": kind,
            "name": name,
            "uid": f"{kind}-{name}",
            "controller": True,
        }
    ] * 10_000


def _expressions(count: int, values: int) -> list[Json]:
    named = [f"v{n}" for n in range(values)]
    return [{"key": f"k{n}", "operator": "NotIn", "values": named} for n in range(count)]


def _notices(count: int) -> str:
    said = json.loads(_record())
    said["instance"] = node_json(TENANTS_NODE)["spec"]["providerID"].rpartition("/")[2]
    said["notices"] = [
        {"kind": f"kind-{n}", "time": "2026-01-02T12:00:00Z", "id": f"{n}" * 100}
        for n in range(count)
    ]
    return json.dumps(said)


_LABEL = "spec/affinity/podAntiAffinity/" + _REQUIRED
_NODES = "spec/affinity/nodeAffinity/" + _REQUIRED + "/nodeSelectorTerms"


def crafted() -> Mapping[str, tuple[str, Json]]:
    """Return by name what an API server takes from a tenant, as large or as odd as it takes it."""
    made = {
        "pod, 10,000 tolerations": _set(
            "Pod", "spec/tolerations", TEMPLATE["tolerations"] * 10_000
        ),
        "pod, 100 tolerations": _set("Pod", "spec/tolerations", TEMPLATE["tolerations"] * 100),
        "pod, 10,000 owners in a circle": _set(
            "Pod", "metadata/ownerReferences", _cycle("Pod", "web-0")
        ),
        "pod, owned by itself": _set("Pod", "metadata/ownerReferences", _cycle("Pod", "web-0")[:1]),
        "pod, grace of ages": _set("Pod", "spec/terminationGracePeriodSeconds", 2**63 - 1, 2),
        "pod, stop-seconds of 5,000 digits": _set(
            "Pod", "metadata/annotations", {STOP_SECONDS: DIGITS}
        ),
        "pod, annotations of 256 KiB": _set(
            "Pod", "metadata/annotations", {f"plimsoll.dev/{n}": "x" * 1024 for n in range(250)}
        ),
        "pod, released by its owner": _set(
            "Pod", "metadata/annotations", {RELEASED: "[" * 100_000}
        ),
        "pod, deleted in the year 1": _set(
            "Pod", "metadata/deletionTimestamp", "0001-01-01T00:00:00Z", 2
        ),
        "pod, 2,000 anti-affinity terms": _set("Pod", _LABEL, [_TERM] * 2000),
        "pod, 20 anti-affinity terms": _set("Pod", _LABEL, [_TERM] * 20),
        "pod, anti-affinity to 10,000 labels": _set(
            "Pod", _LABEL, [_TERM | {"labelSelector": {"matchExpressions": _expressions(100, 100)}}]
        ),
        "pod, 500 node terms": _set("Pod", _NODES, [_NODE_TERM] * 500),
        "pod, 150 node terms": _set("Pod", _NODES, [_NODE_TERM] * 150),
        "pod, 20 spread constraints": _set(
            "Pod", "spec/topologySpreadConstraints", TEMPLATE["topologySpreadConstraints"] * 20
        ),
        "pod, requests of 1e400": _set(
            "Pod", "spec/containers/0/resources/requests", {"cpu": "1e400", "memory": "1e999"}, 2
        ),
        "pod, 100 kinds of resources": _set(
            "Pod", "spec/containers/0/resources/requests", {f"x/{n}": "1e400" for n in range(100)}
        ),
        "pod, 300 containers": _set(
            "Pod", "spec/containers", [{"name": "x", "ports": [{"hostPort": 1}]}] * 300
        ),
        "pod, 10,000 containers": _set("Pod", "spec/containers", [{"name": "x"}] * 10_000),
        "pod, priority of all": _set("Pod", "spec/priority", 2**31 - 1, 2),
        "Deployment, 2³¹ replicas": _set("Deployment", "spec/replicas", 2**31 - 1),
        "Deployment, a surge of ages": _set(
            "Deployment", "spec/strategy", {"rollingUpdate": {"maxSurge": "999999999%"}}
        ),
        "Deployment, a surge of 5,000 digits": _set(
            "Deployment", "spec/strategy", {"rollingUpdate": {"maxSurge": f"{DIGITS}%"}}
        ),
        "Deployment, ready after ages": _set("Deployment", "spec/minReadySeconds", 2**31 - 1),
        "Deployment, 10,000 tolerations": _set(
            "Deployment", "spec/template/spec/tolerations", TEMPLATE["tolerations"] * 10_000
        ),
        "ReplicaSet, owned by itself": _set(
            "ReplicaSet", "metadata/ownerReferences", _cycle("ReplicaSet", "web-abc")
        ),
        "ReplicaSet, revision of 5,000 digits": _set(
            "ReplicaSet", "metadata/annotations", {"deployment.kubernetes.io/revision": DIGITS}
        ),
        "StatefulSet, 2³¹ replicas": _set("StatefulSet", "spec/replicas", 2**31 - 1),
        "budget, 5,000 digits per cent": _set(
            "PodDisruptionBudget", "spec/minAvailable", f"{DIGITS}%"
        ),
        "budget, a small two": _set("PodDisruptionBudget", "spec/minAvailable", "²"),
        "budget, 10,000 values": _set(
            "PodDisruptionBudget", "spec/selector/matchExpressions", _expressions(100, 100)
        ),
        "budget, 1,000 values": _set(
            "PodDisruptionBudget", "spec/selector/matchExpressions", _expressions(100, 10)
        ),
        "autoscaler of nothing": _set("HorizontalPodAutoscaler", "spec/scaleTargetRef", None),
        "autoscaler of itself": _set(
            "HorizontalPodAutoscaler", "spec/scaleTargetRef/kind", "HorizontalPodAutoscaler"
        ),
        "Service, 10,000 labels": _set(
            "Service", "spec/selector", {f"k{n}": "v" for n in range(10_000)}
        ),
        "NetworkPolicy, 10,000 values": _set(
            "NetworkPolicy", "spec/podSelector/matchExpressions", _expressions(100, 100)
        ),
        "quota of 1e400": _set("ResourceQuota", "status/hard", {"pods": "1e400", "cpu": "-1e400"}),
        "claim on somebody's volume": _set("PersistentVolumeClaim", "spec/volumeName", DIGITS),
        "volume in 10,000 places": _set(
            "PersistentVolume",
            "spec/nodeAffinity/required/nodeSelectorTerms",
            volume_json()["spec"]["nodeAffinity"]["required"]["nodeSelectorTerms"] * 10_000,
        ),
        "volume in 10,000 zones": _set(
            "PersistentVolume",
            "metadata/labels",
            {"topology.kubernetes.io/zone": "__".join(map(str, range(10_000)))},
        ),
        "Node, 10,000 labels": _set(
            "Node", "metadata/labels", {f"k{n}": "v" for n in range(10_000)}
        ),
        "Node, 1,000 taints": _set(
            "Node", "spec/taints", [{"key": "a", "effect": "NoExecute"}] * 1000
        ),
        "Node, room of 1e400": _set(
            "Node", "status/allocatable", {"cpu": "1e400", "pods": "1e400"}
        ),
    }
    for name, text in {
        "nested": "[" * 120_000,
        "5,000 digits": f'{{"v":{DIGITS}}}',
        "a version of 4,000 digits": f'{{"v":{DIGITS[:4000]}}}',
        "1,000 notices": _notices(1000),
        "10,000 notices": _notices(2000),
        "half a character": _notices(1).replace("kind-0", "\\ud800"),
        "a launch before all years": _notices(1).replace(
            '"v"', '"launched": "0001-01-01T00:00:00+23:59", "v"'
        ),
    }.items():
        kind, obj = _set("Node", "metadata/annotations", {INTERRUPTION: text})
        made[f"Node, a record of {name}"] = kind, obj
    return made


# Played


@dataclass
class Canned:
    """An API server that lists what it is given, and takes every write."""

    items: dict[str, list[Json]]
    written: list[tuple[str, str]] = field(default_factory=list)
    pages: dict[str, bytes] = field(default_factory=dict)
    """By path: lists as they come over the network."""

    def call(self, method: str, path: str, **_: object) -> Response:
        if method != "GET":
            self.written.append((method, path))
            return Response(status=200, body={})
        if path in self.pages:
            return Response(status=200, content=self.pages[path])
        if path in KIND_AT:
            return Response(status=200, body={"items": self.items.get(KIND_AT[path], [])})
        name = path.rpartition("/")[2]
        for obj in self.items.get("Node", []):
            if isinstance(obj.get("metadata"), dict) and obj["metadata"].get("name") == name:
                return Response(status=200, body=obj)
        return Response(status=404, body={"message": "not found"})


@dataclass
class HostileTenant:
    """One cluster whose tenant changes one object at a time; what did not change is parsed once."""

    clock: Any
    kinds: dict[str, list[Json]] = field(default_factory=of_shop)
    number: int = 0

    def __post_init__(self) -> None:
        self.server = Canned(dict(self.kinds))
        self.api = KubernetesCluster(self.server, "harbor", self.clock, workers=SerialWorkers())

    def write(self, kind: str, obj: Json) -> None:
        """Put the tenant's other objects beside this one, in the place of the last."""
        self.number += 1
        meta = obj.get("metadata")
        if isinstance(meta, dict) and meta.get("resourceVersion") == "1":
            meta["resourceVersion"] = f"hostile-{self.number}"
        uid = meta.get("uid") if isinstance(meta, dict) else None
        self.server.items = {
            each: [
                *self.kinds.get(each, []),
                *(o for o in TENANTS[each] if each != kind or o["metadata"]["uid"] != uid),
                *([obj] if each == kind else []),
            ]
            for each in CALLS
        }

    def without(self, kind: str, obj: Json) -> None:
        """Take the object away, and leave the tenant's others."""
        self.server.items[kind] = [o for o in self.server.items[kind] if o is not obj]


TENANTS = of_tenant()
_PLACE = re.compile(r"(place|headroom) on \S+")
"""Which of several nodes a pod goes to may depend on any other pod; whether it goes may not."""


def placement_of_others(seen: Observation) -> list[object]:
    """Return what two runs of placement do to all but the tenant; moves begin once labels are right."""
    found: list[object] = []
    for minute in (0, 5):
        plan = plan_placement(seen, NOON + timedelta(minutes=minute))
        actions = [step.action for step in plan.steps]
        labels = {a.node.name: a.labels for a in actions if isinstance(a, LabelNode)}
        found += [(g.name, g.opened) for g in plan.groups if g.layout == SPREAD_OVER]
        ours = {name for name, change in labels.items() if label_key(SPREAD_OVER) in change}
        found += sorted(ours & SHOPS_NODES.keys())
        moved = [a.target for a in actions if isinstance(a, Release) and a.pod.namespace == SHOP]
        found += moved if minute else []
        nodes = [_with_labels(node, labels.get(node.name, {})) for node in seen.nodes]
        seen = replace(seen, nodes=nodes)
    return found


def _with_labels(node: Node, change: Mapping[str, str | None]) -> Node:
    labels = {key: value for key, value in {**node.labels, **change}.items() if value is not None}
    return replace(node, labels=labels)


def plans_of_others(seen: Observation) -> list[object]:
    """Return what is planned for all but the tenant: early, in the middle, and at the eviction deadline."""
    found: list[object] = []
    for seconds in (1, 60, 119):
        plan = plan_drain(seen, NOON + timedelta(seconds=seconds))
        found += [
            (step.action.verb, step.action.target, _PLACE.sub(r"\1", step.action.reason))
            for step in plan.steps
            if step.action.target.startswith((f"Pod {SHOP}/", "Node spot", "Node od-"))
            and not isinstance(step.action, LabelNode)  # `placement_of_others` compares them
        ]
        found += [words for words in plan.waiting.get("spot", ()) if f"{SHOP}/" in words]
        found.append(plan.busy)
    return found
