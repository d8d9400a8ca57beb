"""GPUs on the wire: what an agent reads of each, and what is kept of a class of workload for a day.

A `ClassDay` is made of minutes by maxima and by OR, never by adding. So a minute that is merged twice,
late or out of order changes nothing.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import date, timedelta
from typing import Annotated, Final, Literal

from msgspec import Meta, Struct

from plimsoll_service.wire.documents import Count
from plimsoll_service.wire.names import (
    KindName,
    LabelKey,
    LabelValue,
    MaybeMetricLabel,
    MaybeUid,
    MetricLabel,
    Namespace,
    ObjectName,
    Uid,
)

WINDOW: Final = timedelta(minutes=15)
WINDOWS_PER_DAY: Final = 96
MINUTES_PER_DAY: Final = 1440
UNSEEN: Final = -1
"""In a window in which nothing was measured."""
MOST_SAMPLES: Final = 16_000
"""Of a snapshot."""
MOST_PODS: Final = 64
"""Of a class and day that are kept one by one."""
MOST_PODS_OF_ALL: Final = 2048
"""Of all classes of a minute, or of a day, that are kept one by one."""
COUNTERS: Final[Mapping[str, str]] = {
    "DCGM_FI_PROF_GR_ENGINE_ACTIVE": "gauge, Ratio of time the graphics engine is active.",
    "DCGM_FI_DEV_GPU_UTIL": "gauge, GPU utilization (in %).",
    "DCGM_FI_PROF_SM_ACTIVE": "gauge, The ratio of cycles an SM has at least 1 warp assigned.",
    "DCGM_FI_PROF_DRAM_ACTIVE": "gauge, Ratio of cycles the device memory interface is active sending or receiving data.",
    "DCGM_FI_DEV_FB_USED": "gauge, Framebuffer memory used (in MiB).",
    "DCGM_FI_DEV_FB_FREE": "gauge, Framebuffer memory free (in MiB).",
    "DCGM_FI_DEV_FB_RESERVED": "gauge, Framebuffer memory reserved (in MiB).",
    "DCGM_FI_DEV_POWER_USAGE": "gauge, Power draw (in W).",
    "DCGM_FI_DEV_XID_ERRORS": "gauge, Value of the last XID error encountered.",
}
"""The metrics that are read, and the rest of the line of the exporter's counters file that turns each on:
https://github.com/NVIDIA/dcgm-exporter/blob/main/etc/default-counters.csv"""
SAMPLED: Final[Mapping[str, str]] = {
    "duty": "DCGM_FI_PROF_GR_ENGINE_ACTIVE",
    "sm_active": "DCGM_FI_PROF_SM_ACTIVE",
    "dram_active": "DCGM_FI_PROF_DRAM_ACTIVE",
    "memory_used_mib": "DCGM_FI_DEV_FB_USED",
    "memory_total_mib": "DCGM_FI_DEV_FB_FREE",
    "power_w": "DCGM_FI_DEV_POWER_USAGE",
    "last_xid": "DCGM_FI_DEV_XID_ERRORS",
}
"""Which metric a field of `GpuSample` is missing without."""
_DECORATION: Final = re.compile(r"(-SHARED|-MIG-[0-9]+g\.[0-9]+gb(\+[a-z.]+)*(\.shared)?)+\Z")

type Share = Annotated[int, Meta(ge=0, le=1000)]
"""Thousandths of a GPU's time."""
type Mib = Annotated[int, Meta(ge=0, le=2**26)]
type Watts = Annotated[int, Meta(ge=0, le=2**16)]
"""Of one GPU. A document of a day has room for numbers of no more digits."""
type Sharing = Literal["none", "time-slicing", "mps"]
type Windows = Annotated[
    tuple[Annotated[int, Meta(ge=UNSEEN, le=2**53)], ...],
    Meta(min_length=WINDOWS_PER_DAY, max_length=WINDOWS_PER_DAY),
]
"""The maximum of each window of 15 minutes of a day in UTC; `UNSEEN`: nothing was measured in it."""
type Minutes = Annotated[str, Meta(pattern=r"^[0-9a-f]{0,360}\Z")]
"""A bit for each minute of a day in UTC, as a hexadecimal number; the lowest bit is the first minute."""


class Part(Struct, frozen=True, omit_defaults=True, gc=False):
    """Part of what is told of GPUs. A field at its default is left out of the JSON."""


class GpuSample(Part, array_like=True, frozen=True, kw_only=True):
    """A GPU, or a MIG instance of one, and the pod that has it. None: the exporter does not tell it."""

    node: ObjectName
    """The name of the Node."""
    gpu: MetricLabel
    """The UUID of the GPU."""
    model: MetricLabel
    """As `model_of` writes it."""
    instance: MaybeMetricLabel = ""
    """The profile of the MIG instance, such as 1g.10gb; empty: the whole GPU."""
    instance_id: MaybeMetricLabel = ""
    sharing: Sharing = "none"
    """How the node shares this GPU among pods. Under time-slicing `sm_active` and `dram_active` are the
    device's, not the pod's."""
    pod: MaybeUid = ""
    """The uid of the pod; empty: no pod has it."""
    duty: Share | None = None
    """GR_ENGINE_ACTIVE, or GPU_UTIL where that is missing."""
    sm_active: Share | None = None
    dram_active: Share | None = None
    memory_used_mib: Mib | None = None
    memory_total_mib: Mib | None = None
    power_w: Watts | None = None
    last_xid: Count | None = None


class GpuClass(Part, frozen=True, kw_only=True, order=True):
    """Pods of one owner and one template on one model of GPU: alike enough to be sized together."""

    namespace: Namespace
    kind: KindName
    owner: ObjectName
    template: LabelValue = ""
    """The hash of the pod template, as its ReplicaSet or ControllerRevision has it."""
    model: MetricLabel


class PodDay(Part, frozen=True, kw_only=True):
    """A pod of a class on one day."""

    pod: Uid
    """Its uid."""
    node: ObjectName
    instance_type: LabelValue = ""
    capacity: LabelValue = ""
    """`spot`, `on-demand`, or empty where the Node does not tell."""
    node_gpus: Count = 0
    """The GPUs of its node: its share of the price."""
    gpus: Count = 1
    """How many GPUs, slices or replicas it holds."""
    seen: Minutes = ""
    """In which it held them."""
    busy: Minutes = ""
    """In which a kernel ran on any of them, or nobody measured whether one did."""
    memory_mib: Windows
    """Of the one of its GPUs that was fullest."""
    duty: Windows
    """In thousandths, of its busiest GPU."""
    dram: Windows
    """Memory bandwidth in thousandths, of its busiest GPU."""
    power_w: Windows


class ClassDay(Part, frozen=True, kw_only=True):
    """A class of workload on one day in UTC."""

    of: GpuClass
    day: date
    resource: LabelKey
    """What its pods request, such as nvidia.com/gpu or nvidia.com/mig-1g.10gb."""
    sharing: Sharing = "none"
    pods: Annotated[tuple[PodDay, ...], Meta(max_length=MOST_PODS)] = ()
    joint_memory_mib: Windows
    """The largest sum over all pods of the class in one minute."""
    joint_duty: Windows
    left_out: Count = 0
    """At least so many pods are in the joint sums alone: `pods` are those with the lowest uids, a fair sample."""
    missing: Annotated[tuple[MetricLabel, ...], Meta(max_length=16)] = ()
    """Metrics that no exporter told of any of its pods, by their DCGM names: `COUNTERS` turns them on."""


class ClassDays(Part, frozen=True, kw_only=True):
    """A page of what is kept of a cluster's GPUs."""

    days: tuple[ClassDay, ...] = ()
    left_out: Count = 0
    """GPUs, instances or classes that were too many to keep."""
    next: Annotated[str, Meta(max_length=256)] = ""
    """Ask with it for the next page; empty: this is the last."""


def model_of(product: str) -> str:
    """Return the model that a product label of GPU Feature Discovery or a DCGM model name means.

    `NVIDIA-H100-80GB-HBM3-MIG-1g.10gb`, `NVIDIA-H100-80GB-HBM3-SHARED` and `NVIDIA H100 80GB HBM3` are one.
    """
    plain = _DECORATION.sub("", product.strip().replace(" ", "-"))
    return plain.removeprefix("NVIDIA-")
