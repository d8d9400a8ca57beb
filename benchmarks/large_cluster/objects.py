"""The objects of a cluster like one on EKS, each made when it is asked for: `pod.yaml` is what its pods are like.

Three of the thirty pods of a node belong to DaemonSets. One workload in twenty is a StatefulSet with a
volume for each pod; of the Deployments one in five must be spread over the zones, others should be.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from hashlib import sha256
from itertools import islice
from pathlib import Path
from typing import Any, Final

import yaml

from tests.support.builders import (
    budget_json,
    claim_json,
    deployment_json,
    mounting,
    node_json,
    replica_set_json,
    stateful_set_json,
    volume_json,
)

type Json = dict[str, Any]
type Filled = tuple[str, Mapping[str, object]]
"""A template, and what stands in the places of its placeholders."""

ON_NODE: Final = 30
DAEMONS: Final = ("aws-node", "kube-proxy", "ebs-csi-node")
APPS_ON_NODE: Final = ON_NODE - len(DAEMONS)
REPLICAS: Final = 50
REVISIONS: Final = 6
"""ReplicaSets of a Deployment: Kubernetes keeps up to ten old ones."""
ON_DEMAND: Final = 3
"""Of ten nodes."""
STATEFUL, SPREAD = 20, 5
"""One in so many workloads is a StatefulSet; must be spread over the zones."""
NAMESPACES: Final = 60


@dataclass(frozen=True)
class Kind:
    """All objects of one kind."""

    version: str
    kind: str
    plural: str
    count: int = 0
    fill: Callable[[int], Filled] = lambda _: ("", {})

    @property
    def path(self) -> str:
        """Return the path of the collection."""
        return f"/{'apis' if '/' in self.version else 'api'}/{self.version}/{self.plural}"

    def text(self, number: int) -> str:
        """Return one object as JSON."""
        template, values = self.fill(number)
        return template % values

    @cached_property
    def numbers(self) -> Mapping[tuple[object, object], int]:
        """Return the number of each object by its namespace, if it has one, and its name."""
        filled = ((number, self.fill(number)[1]) for number in range(self.count))
        return {(values.get("namespace"), values["name"]): number for number, values in filled}


class LargeCluster:
    """A cluster of about so many pods."""

    def __init__(self, pods: int) -> None:
        self.nodes = pods // ON_NODE
        self._apps = self.nodes * APPS_ON_NODE
        self._workloads = max(1, self._apps // REPLICAS)
        self._sets = -(-self._workloads // STATEFUL)
        deployments = self._workloads - self._sets
        volumes = sum(len(self._replicas(n * STATEFUL)) for n in range(self._sets))
        self.kinds: Mapping[str, Kind] = {
            kind.path: kind
            for kind in (
                Kind("v1", "Node", "nodes", self.nodes, _node),
                Kind("v1", "Pod", "pods", self.nodes * ON_NODE, self._pod),
                Kind("apps/v1", "Deployment", "deployments", deployments, self._deployment),
                Kind(
                    "apps/v1", "ReplicaSet", "replicasets", deployments * REVISIONS, self._revision
                ),
                Kind("apps/v1", "StatefulSet", "statefulsets", self._sets, self._stateful_set),
                Kind(
                    "policy/v1",
                    "PodDisruptionBudget",
                    "poddisruptionbudgets",
                    deployments,
                    self._budget,
                ),
                Kind("v1", "Service", "services", deployments, self._service),
                Kind(
                    "autoscaling/v2",
                    "HorizontalPodAutoscaler",
                    "horizontalpodautoscalers",
                    deployments // 4,
                    self._scaler,
                ),
                Kind("v1", "PersistentVolumeClaim", "persistentvolumeclaims", volumes, self._claim),
                Kind("v1", "PersistentVolume", "persistentvolumes", volumes, self._volume),
                Kind(
                    "storage.k8s.io/v1",
                    "VolumeAttachment",
                    "volumeattachments",
                    volumes,
                    self._attached,
                ),
                Kind("v1", "Namespace", "namespaces", NAMESPACES, _namespace),
                Kind("networking.k8s.io/v1", "NetworkPolicy", "networkpolicies"),
                Kind("v1", "ResourceQuota", "resourcequotas"),
                Kind("v1", "ConfigMap", "configmaps"),
            )
        }

    def spot(self, count: int) -> dict[str, str]:
        """Return the instances of so many spot nodes, by their names."""
        numbers = (n for n in range(self.nodes) if n % 10 >= ON_DEMAND)
        values = map(_values_of_node, islice(numbers, count))
        return {str(node["name"]): str(node["instance"]) for node in values}

    def pods_on(self, node: str) -> range:
        """Return the numbers of the pods of a node."""
        number = self.kinds["/api/v1/nodes"].numbers.get((None, node))
        return range(0) if number is None else range(number * ON_NODE, (number + 1) * ON_NODE)

    def _replicas(self, workload: int) -> range:
        """Return the numbers of the pods of a workload, among those of all workloads."""
        return range(workload, self._apps, self._workloads)

    def _values(self, workload: int, app: int | None = None) -> dict[str, object]:
        """Return what is said of a workload, and of its pod of that number."""
        app = workload if app is None else app
        stateful, name = workload % STATEFUL == 0, f"app-{workload}"
        node = _values_of_node(app // APPS_ON_NODE)
        pod = f"{name}-{app // self._workloads}" if stateful else f"{name}-{_HASH}-{app:07}"
        return {
            "app": name,
            "name": name,
            "pod": pod,
            "namespace": f"team-{workload % NAMESPACES}",
            "uid": _uid(1, workload),
            "hash": _HASH,
            "owner": _uid(1 if stateful else 2, workload),
            "spread": "DoNotSchedule" if workload % SPREAD == 1 else "ScheduleAnyway",
            "replicas": len(self._replicas(workload)),
            "node": node["name"],
            "zone": node["zone"],
            "volume": f"pvc-{app:07}",
        }

    def _pod(self, number: int) -> Filled:
        node, place = divmod(number, ON_NODE)
        if place < len(DAEMONS):
            app = DAEMONS[place]
            values = self._values(1) | {
                "app": app,
                "pod": f"{app}-{node:05}",
                "namespace": "kube-system",
            }
            template = _DAEMON
            values["node"] = _values_of_node(node)["name"]
        else:
            app_number = node * APPS_ON_NODE + place - len(DAEMONS)
            workload = app_number % self._workloads
            template = _POD if workload % STATEFUL else _MEMBER
            values = self._values(workload, app_number)
        return template, values | {
            "name": values["pod"],
            "uid": _uid(3, number),
            "ip": f"10.{number >> 16}.{number >> 8 & 255}.{number & 255}",
            "digest": sha256(b"%d" % number).hexdigest(),
            "proxy": sha256(b"-%d" % number).hexdigest(),
        }

    def _of_deployment(self, number: int) -> dict[str, object]:
        return self._values(number // (STATEFUL - 1) * STATEFUL + number % (STATEFUL - 1) + 1)

    def _deployment(self, number: int) -> Filled:
        return _DEPLOYMENT, self._of_deployment(number)

    def _revision(self, number: int) -> Filled:
        deployment, age = divmod(number, REVISIONS)
        values = self._of_deployment(deployment)
        values |= {"revision": REVISIONS - age, "deployment": values["uid"], "uid": values["owner"]}
        if age:
            values |= {"hash": f"{_HASH}{age}", "replicas": 0, "uid": _uid(4, number)}
        return _REPLICA_SET, values | {"name": f"{values['app']}-{values['hash']}"}

    def _stateful_set(self, number: int) -> Filled:
        return _STATEFUL_SET, self._values(number * STATEFUL)

    def _budget(self, number: int) -> Filled:
        return _BUDGET, self._of_deployment(number)

    def _service(self, number: int) -> Filled:
        return _SERVICE, self._of_deployment(number)

    def _scaler(self, number: int) -> Filled:
        return _SCALER, self._of_deployment(number * 4)

    def _of_volume(self, number: int) -> dict[str, object]:
        ordinal, which = divmod(number, self._sets)
        workload = which * STATEFUL
        return self._values(workload, ordinal * self._workloads + workload)

    def _claim(self, number: int) -> Filled:
        values = self._of_volume(number)
        return _CLAIM, values | {"name": f"data-{values['pod']}", "uid": _uid(9, number)}

    def _volume(self, number: int) -> Filled:
        values = self._of_volume(number)
        return _VOLUME, {"name": values["volume"], "zone": values["zone"], "uid": _uid(6, number)}

    def _attached(self, number: int) -> Filled:
        said = {key: self._of_volume(number)[key] for key in ("node", "volume")}
        return _ATTACHMENT, said | {"name": f"csi-{number}", "uid": _uid(7, number)}


def _values_of_node(number: int) -> dict[str, object]:
    return {
        "name": f"ip-10-{number >> 16}-{number >> 8 & 255}-{number & 255}.ec2.internal",
        "instance": f"i-{number:017x}",
        "zone": f"us-east-1{'abc'[number % 3]}",
        "capacity": "ON_DEMAND" if number % 10 < ON_DEMAND else "SPOT",
        "type": f"{('m5', 'c5', 'r5', 'm6i', 'c6i', 'r6i')[number % 6]}.4xlarge",
        "uid": _uid(5, number),
    }


def _node(number: int) -> Filled:
    return _NODE, _values_of_node(number)


def _namespace(number: int) -> Filled:
    return _NAMESPACE, {"name": f"team-{number}", "uid": _uid(8, number)}


def _uid(kind: int, number: int) -> str:
    return f"{kind:08x}-0b1c-4c57-9f5e-{number:012x}"


def _template(obj: Json, **metadata: object) -> str:
    """Return an object as JSON, with the fields that its managers claim and `<…>` as placeholders.

    https://kubernetes.io/docs/reference/using-api/server-side-apply/#managed-fields
    """
    obj["metadata"] |= {"uid": "<uid>", "resourceVersion": "1000", **metadata}
    written = {"operation": "Update", "apiVersion": "v1", "fieldsType": "FieldsV1"}
    obj["metadata"]["managedFields"] = [
        {"manager": by, "time": "2026-01-02T10:00:00Z", **written, "fieldsV1": dict(_fields(part))}
        for by, part in (
            ("kube-controller-manager", {"spec": obj.get("spec", {})}),
            ("kubelet", {"status": obj.get("status", {})}),
        )
    ]
    text = json.dumps(obj, separators=(",", ":")).replace("%", "%%")
    text = re.sub(r'"<replicas>"', "<replicas>", text)
    return re.sub(r"<(\w+)>", r"%(\1)s", text)


def _fields(obj: Json) -> Iterator[tuple[str, Any]]:
    for key, value in obj.items():
        match value:
            case dict():
                yield f"f:{key}", dict(_fields(value))
            case [{"name": _}, *_]:
                names = [f'k:{{"name":"{each["name"]}"}}' for each in value]
                yield f"f:{key}", {n: dict(_fields(e)) for n, e in zip(names, value, strict=True)}
            case _:
                yield f"f:{key}", {}


def _pod_template(owner: str, name: str, *volumes: Json) -> str:
    pod = _read_pod()
    pod["metadata"]["ownerReferences"][0] |= {"kind": owner, "name": name}
    pod["spec"]["volumes"] += volumes
    return _template(pod)


def _read_pod() -> Json:
    pod: Json = yaml.safe_load(Path(__file__).with_name("pod.yaml").read_text())
    return pod


def _workload_template(made: Json, **metadata: object) -> str:
    made["spec"] |= {"replicas": "<replicas>", "selector": {"matchLabels": {"app": "<app>"}}}
    made["spec"]["template"] = {
        "metadata": {"labels": {"app": "<app>"}},
        "spec": _read_pod()["spec"],
    }
    made["status"] = {
        f"{which}eplicas": "<replicas>" for which in ("r", "readyR", "availableR", "updatedR")
    }
    return _template(made, **metadata)


def _node_template() -> str:
    kubernetes = {
        "eks.amazonaws.com/capacityType": "<capacity>",
        "node.kubernetes.io/instance-type": "<type>",
    }
    node = node_json(
        "<name>",
        cpu="15890m",
        memory="60Gi",
        zone="<zone>",
        instance="<instance>",
        capacity=None,
        labels=kubernetes,
    )
    image = f"111122223333.dkr.ecr.us-east-1.amazonaws.com/shop@sha256:{'0f' * 32}"
    node["status"]["images"] = [
        {"names": [image, f"{image}-{n}"], "sizeBytes": n} for n in range(50)
    ]
    return _template(node)


def _simple_template(kind: str, **rest: object) -> str:
    return _template(
        {"kind": kind, "metadata": {"name": "<name>", "namespace": "<namespace>"}, **rest}
    )


_HASH: Final = "6d4b75cb6d"
_IN: Final[Mapping[str, Any]] = {"name": "<name>", "namespace": "<namespace>"}
_DEPLOYED: Final[Mapping[str, Any]] = {
    "apiVersion": "apps/v1",
    "kind": "Deployment",
    "name": "<app>",
}
_NODE: Final = _node_template()
_POD: Final = _pod_template("ReplicaSet", "<app>-<hash>")
_MEMBER: Final = _pod_template("StatefulSet", "<app>", *mounting("data-<name>"))
_DAEMON: Final = _pod_template("DaemonSet", "<app>")
_DEPLOYMENT: Final = _workload_template(deployment_json(**_IN))
_STATEFUL_SET: Final = _workload_template(stateful_set_json(**_IN))
_REPLICA_SET: Final = _workload_template(
    replica_set_json(**_IN),
    labels={"app": "<app>", "pod-template-hash": "<hash>"},
    annotations={"deployment.kubernetes.io/revision": "<revision>"},
    ownerReferences=[{**_DEPLOYED, "uid": "<deployment>", "controller": True}],
)
_BUDGET: Final = _template(budget_json(**_IN, allowed=12, maxUnavailable="25%"))
_SERVICE: Final = _simple_template("Service", spec={"selector": {"app": "<app>"}})
_SCALER: Final = _simple_template(
    "HorizontalPodAutoscaler",
    spec={"scaleTargetRef": dict(_DEPLOYED), "minReplicas": 2, "maxReplicas": 100},
)
_CLAIM: Final = _template(claim_json(**_IN, volume="<volume>"))
_VOLUME: Final = _template(volume_json("<name>", zone="<zone>"))
_ATTACHMENT: Final = _template(
    {
        "kind": "VolumeAttachment",
        "metadata": {"name": "<name>"},
        "spec": {"nodeName": "<node>", "source": {"persistentVolumeName": "<volume>"}},
        "status": {"attached": True},
    }
)
_NAMESPACE: Final = _template({"kind": "Namespace", "metadata": {"name": "<name>"}})
