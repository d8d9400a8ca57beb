"""A fleet of 24 whole GPUs, and the workloads that hold them: how each uses its GPUs is what the advice has to find."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any, Final, Literal

from plimsoll.domain.kubernetes import DO_NOT_DISRUPT, GPU, INSTANCE_TYPE, MIG_STATE

type Json = dict[str, Any]

NAMESPACE: Final = "lab"
OPERATOR: Final = "gpu-operator"
CONTAINER: Final = "main"
COUNT: Final = "nvidia.com/gpu.count"
INSTANCE: Final = "p5.48xlarge"
PER_NODE: Final = 8
OPERANDS: Final = ("device-plugin", "dcgm-exporter")
"""DaemonSets of the GPU Operator that leave a node while its GPUs are split."""
NODES: Final = ("gpu-a", "gpu-b", "gpu-c")
BEGIN: Final = datetime(2026, 1, 5, tzinfo=UTC)
"""The Monday at which the week begins. The script changes by the hour."""
_FRIDAY_NOON: Final = BEGIN + timedelta(days=4, hours=12)


@dataclass(frozen=True, slots=True, kw_only=True)
class Workload:
    """Pods that ask for whole GPUs, and how they use them."""

    name: str
    node: str
    kind: Literal["Deployment", "StatefulSet", "Job"] = "Deployment"
    pods: int
    gpus: int = 1
    """Of a pod."""
    mib: int
    """The most that a GPU of it holds, but for a burst."""
    duty: int
    """Percent, while it works."""
    dram: int = 10
    """Percent of the memory bandwidth, while it works."""
    works: Callable[[datetime], bool] = lambda _: True
    burst_mib: int = 0
    """What its first pod holds for an hour on Friday."""
    hourly: bool = False
    """Whether it is scaled with a queue: each of its pods lives for an hour."""

    def uid(self, number: int, at: datetime) -> str:
        """Return the uid of a pod at a time."""
        return f"{self.name}-{at:%d%H}-{number}" if self.hourly else f"{self.name}-{number}"

    def held_mib(self, number: int, at: datetime) -> int:
        """Return the most that the GPUs of a pod hold at a time."""
        bursts = number == 0 and at == _FRIDAY_NOON
        return max(self.mib, self.burst_mib) if bursts else self.mib


def _office(at: datetime) -> bool:
    return at.weekday() < 5 and 7 <= at.hour < 20  # noqa: PLR2004 - Monday to Friday, from 7 to 20


def _never(_: datetime) -> bool:
    return False


WORKLOADS: Final = (
    # Idle at night, and never above half a GPU.
    Workload(
        name="notebooks",
        node="gpu-a",
        kind="StatefulSet",
        pods=7,
        mib=38_000,
        duty=30,
        works=_office,
    ),
    # Looks small, until Friday.
    Workload(name="search", node="gpu-a", pods=1, mib=15_000, duty=12, burst_mib=70_000),
    Workload(name="chat", node="gpu-b", pods=3, mib=9_000, duty=12),
    Workload(name="transcribe", node="gpu-b", pods=2, mib=9_400, duty=10, hourly=True),
    Workload(name="caption", node="gpu-b", pods=2, mib=17_500, duty=11, hourly=True),
    Workload(name="forgotten", node="gpu-b", pods=1, mib=600, duty=0, works=_never),
    Workload(
        name="training", node="gpu-c", kind="Job", pods=1, gpus=8, mib=70_000, duty=97, dram=60
    ),
)


def node(name: str) -> Json:
    """Return a node as the GPU Operator labels it, its GPUs whole."""
    labels = {
        "kubernetes.io/hostname": name,
        INSTANCE_TYPE: INSTANCE,
        "eks.amazonaws.com/capacityType": "ON_DEMAND",
        "nvidia.com/gpu.product": "NVIDIA-H100-80GB-HBM3",
        COUNT: str(PER_NODE),
        "nvidia.com/mig.strategy": "mixed",
        "nvidia.com/mig.config": "all-disabled",
        MIG_STATE: "success",
        **{f"nvidia.com/gpu.deploy.{each}": "true" for each in OPERANDS},
    }
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "labels": labels},
        "status": {
            "allocatable": {
                "cpu": "192",
                "memory": "2000Gi",
                "pods": "110",
                GPU: str(PER_NODE),
            }
        },
    }


def manifest(of: Workload) -> Json:
    """Return a workload as its owner applies it."""
    meta = {"name": of.name, "namespace": NAMESPACE}
    labels = {"app": of.name}
    spec: Json = {"template": {"metadata": {"labels": labels}, "spec": _pod_spec(of)}}
    if of.kind == "Job":
        spec["template"]["spec"]["restartPolicy"] = "Never"
        spec["template"]["metadata"]["annotations"] = {DO_NOT_DISRUPT: "true"}
        spec |= {"parallelism": of.pods, "completions": of.pods}
        return {"apiVersion": "batch/v1", "kind": of.kind, "metadata": meta, "spec": spec}
    spec |= {"replicas": of.pods, "selector": {"matchLabels": labels}}
    if of.kind == "StatefulSet":
        spec |= {"serviceName": of.name, "podManagementPolicy": "Parallel"}
    return {"apiVersion": "apps/v1", "kind": of.kind, "metadata": meta, "spec": spec}


def operand(name: str) -> Json:
    """Return a DaemonSet of the GPU Operator."""
    labels = {"app": f"nvidia-{name}"}
    spec = {
        "nodeSelector": {f"nvidia.com/gpu.deploy.{name}": "true"},
        "tolerations": [{"operator": "Exists"}],
        "containers": [{"name": CONTAINER, "image": "lab"}],
    }
    return {
        "apiVersion": "apps/v1",
        "kind": "DaemonSet",
        "metadata": {"name": f"nvidia-{name}", "namespace": OPERATOR},
        "spec": {
            "selector": {"matchLabels": labels},
            "template": {"metadata": {"labels": labels}, "spec": spec},
        },
    }


def objects(at: datetime) -> Iterator[Json]:
    """Yield the nodes, controllers and pods of the fleet at a time, as the API server tells them."""
    created = {"creationTimestamp": f"{BEGIN:%Y-%m-%dT%H:%M:%SZ}"}
    for name in NODES:
        made = node(name)
        made["metadata"] |= created | {"uid": name}
        made["status"]["conditions"] = [{"type": "Ready", "status": "True"}]
        yield made
    for of in WORKLOADS:
        whole = manifest(of)
        whole["metadata"] |= created | {"uid": of.name}
        controller = whole
        if of.kind == "Deployment":
            controller = {
                **whole,
                "kind": "ReplicaSet",
                "metadata": {**whole["metadata"], "name": f"{of.name}-1", "uid": f"{of.name}-rs"},
            }
            controller["metadata"]["ownerReferences"] = [_owner(whole)]
            yield controller
        for number in range(of.pods):
            meta = {
                "name": of.uid(number, at),
                "namespace": NAMESPACE,
                "uid": of.uid(number, at),
                "labels": {"app": of.name, "pod-template-hash": "1"},
                "annotations": whole["spec"]["template"]["metadata"].get("annotations", {}),
                "ownerReferences": [_owner(controller)],
            }
            yield {
                "apiVersion": "v1",
                "kind": "Pod",
                "metadata": meta | created,
                "spec": {"nodeName": of.node, **_pod_spec(of)},
                "status": {"phase": "Running"},
            }


def _pod_spec(of: Workload) -> Json:
    gpus = {GPU: str(of.gpus)}
    resources = {"limits": gpus, "requests": {"cpu": "4", "memory": "32Gi", **gpus}}
    return {"containers": [{"name": CONTAINER, "image": "lab", "resources": resources}]}


def _owner(controller: Json) -> Json:
    meta = controller["metadata"]
    return {
        "apiVersion": controller["apiVersion"],
        "kind": controller["kind"],
        "name": meta["name"],
        "uid": meta["uid"],
        "controller": True,
    }
