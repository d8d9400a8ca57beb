"""A minute of a cluster's GPUs, by class of workload: what is kept until its hour is made."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from heapq import nsmallest
from typing import Final

from msgspec.structs import replace

from plimsoll.domain.kubernetes import GPU, INSTANCE_TYPE, MIG_SLICES, capacity_of
from plimsoll_service.domain.gpu.cards import CARDS
from plimsoll_service.wire.gpu import (
    MOST_PODS,
    MOST_PODS_OF_ALL,
    SAMPLED,
    UNSEEN,
    GpuClass,
    GpuSample,
    Part,
    Sharing,
    model_of,
)
from plimsoll_service.wire.snapshot import Node, Pod, Snapshot

MOST_CLASSES: Final = 200
"""Of a minute, and of an hour."""
_PRODUCT: Final = "nvidia.com/gpu.product"
_COUNT: Final = "nvidia.com/gpu.count"
_STRATEGY: Final = "nvidia.com/gpu.sharing-strategy"
SHARINGS: Final[tuple[Sharing, ...]] = ("none", "mps", "time-slicing")
"""From the least that pods of one GPU have of each other to the most."""
_LONGEST: Final = 256
_LARGEST: Final = 2**53
"""Of the texts and amounts that a document holds."""


class PodMinute(Part, array_like=True, frozen=True, kw_only=True):
    """A pod that held GPUs. `UNSEEN` is an amount that was not measured."""

    pod: str
    node: str
    instance_type: str
    capacity: str
    node_gpus: int
    gpus: int
    busy: bool
    """Whether a kernel ran, or nobody measured whether one did."""
    memory_mib: int = UNSEEN
    duty: int = UNSEEN
    dram: int = UNSEEN
    power_w: int = UNSEEN


class ClassMinute(Part, array_like=True, frozen=True, kw_only=True):
    """The pods of a class."""

    of: GpuClass
    resource: str
    sharing: Sharing
    pods: tuple[PodMinute, ...]
    """By uid, the lowest ones."""
    joint_memory_mib: int
    joint_duty: int
    left_out: int
    """Pods that are in the joint sums alone."""
    missing: tuple[str, ...]


class GpuMinute(Part, frozen=True, kw_only=True):
    """The GPUs of a cluster."""

    classes: tuple[ClassMinute, ...]
    left_out: int = 0
    """GPUs, instances and classes that were too many."""


def gpu_minute_of(snapshot: Snapshot) -> GpuMinute | None:
    """Return the minute of a full snapshot; None: no pod holds a GPU.

    A pod that holds GPUs counts although no exporter told of them. Of too many classes those with the most pods stay.
    """
    nodes = {node.name: node for node in snapshot.nodes}
    samples, cards = defaultdict[str, list[GpuSample]](list), defaultdict[str, set[str]](set)
    for each in snapshot.gpus:
        cards[each.node].add(each.gpu)
        if each.pod:
            samples[each.pod].append(each)
    found = defaultdict[GpuClass, list[Pod]](list)
    for pod in snapshot.pods:
        if pod.node in nodes and (pod.gpus or pod.uid in samples):
            found[_class_of(pod, nodes[pod.node], samples[pod.uid])].append(pod)
    if not found:
        return None
    order = sorted(found, key=lambda of: (-len(found[of]), of))
    minutes = [_class_minute(of, found[of], nodes, samples, cards) for of in order[:MOST_CLASSES]]
    most = pods_of_each([len(each.pods) for each in minutes], MOST_PODS)
    return GpuMinute(
        classes=tuple(_with_pods(each, most) for each in minutes),
        left_out=snapshot.gpus_left_out + len(order[MOST_CLASSES:]),
    )


def pods_of_each(numbers: Iterable[int], most: int) -> int:
    """Return how many pods of each class are kept one by one, so that all of them have room.

    Args:
        numbers: How many pods each class has: of at most `MOST_PODS_OF_ALL` classes.
        most: Of one class.
    """
    found = list(numbers)
    while sum(min(number, most) for number in found) > MOST_PODS_OF_ALL:
        most -= 1
    return most


def _with_pods(minute: ClassMinute, most: int) -> ClassMinute:
    """Return a minute with so many of its pods, those with the lowest uids; the others count as left out."""
    beyond = max(len(minute.pods) - most, 0)
    return replace(minute, pods=minute.pods[:most], left_out=minute.left_out + beyond)


def _class_of(pod: Pod, node: Node, samples: Sequence[GpuSample]) -> GpuClass:
    models = [model_of(node.labels.get(_PRODUCT, "")), *(each.model for each in samples)]
    return GpuClass(
        namespace=pod.namespace,
        kind=pod.owner.kind if pod.owner else "Pod",
        owner=pod.owner.name if pod.owner else pod.name,
        template=pod.template,
        model=next(filter(None, models), "unknown"),
    )


def _class_minute(
    of: GpuClass,
    pods: Sequence[Pod],
    nodes: Mapping[str, Node],
    samples: Mapping[str, Sequence[GpuSample]],
    cards: Mapping[str, set[str]],
) -> ClassMinute:
    minutes = [
        _pod_minute(of, p, nodes[p.node], samples[p.uid], len(cards.get(p.node, ()))) for p in pods
    ]
    kept = nsmallest(MOST_PODS, minutes, key=lambda each: each.pod)
    all_samples = [each for pod in pods for each in samples[pod.uid]]
    return ClassMinute(
        of=of,
        resource=max(_resource_of(pod, samples[pod.uid]) for pod in pods),
        sharing=max((_sharing_of(nodes[pod.node]) for pod in pods), key=SHARINGS.index),
        pods=tuple(kept),
        joint_memory_mib=_sum(each.memory_mib for each in minutes),
        joint_duty=_sum(each.duty for each in minutes),
        left_out=len(minutes) - len(kept),
        missing=tuple(
            sorted(
                metric
                for field, metric in SAMPLED.items()
                if all(getattr(each, field) is None for each in all_samples)
            )
        ),
    )


def _pod_minute(
    of: GpuClass, pod: Pod, node: Node, samples: Sequence[GpuSample], cards: int
) -> PodMinute:
    type_ = node.labels.get(INSTANCE_TYPE, "")
    gpus = min(sum(pod.gpus.values()), _LARGEST) or len(samples)
    card = CARDS.get(of.model)
    labelled = re.fullmatch(r"[0-9]{1,4}", node.labels.get(_COUNT, ""))
    known = card.instance_types.get(type_, 0) if card else 0
    # Replicas of one shared GPU are one sample, however many of them a pod has.
    partly = len(samples) < (1 if _sharing_of(node) != "none" else gpus)
    return PodMinute(
        pod=pod.uid,
        node=pod.node,
        instance_type=type_,
        capacity=capacity_of(node.labels) or "",
        node_gpus=cards or known or (int(labelled[0]) if labelled else 0),
        gpus=gpus,
        busy=partly or any(each.duty != 0 for each in samples),
        memory_mib=_most(each.memory_used_mib for each in samples),
        duty=_most(each.duty for each in samples),
        dram=_most(each.dram_active for each in samples),
        power_w=_most(each.power_w for each in samples),
    )


def _resource_of(pod: Pod, samples: Sequence[GpuSample]) -> str:
    if pod.gpus:
        return max(pod.gpus, key=lambda name: (pod.gpus[name], name))
    profile = next((each.instance for each in samples if each.instance), "")
    return f"{MIG_SLICES}{profile}"[:_LONGEST] if profile else GPU


def _sharing_of(node: Node) -> Sharing:
    said = node.labels.get(_STRATEGY, "")
    return next((each for each in SHARINGS if each == said), "none")


def _most(amounts: Iterable[int | None]) -> int:
    return max((each for each in amounts if each is not None), default=UNSEEN)


def _sum(amounts: Iterable[int]) -> int:
    measured = [each for each in amounts if each != UNSEEN]
    return min(sum(measured), _LARGEST) if measured else UNSEEN
