"""A week of the fleet in virtual time: what dcgm-exporter prints, read by the agent and kept by the service."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import Final
from zlib import crc32

from plimsoll_agent.cluster_reader import Seen
from plimsoll_agent.exposition import series_of
from plimsoll_agent.gpu_metrics import GpuReading
from plimsoll_agent.gpu_samples import Known, gpu_samples
from plimsoll_agent.objects import read_node, read_pod
from plimsoll_agent.snapshots import full_snapshot
from plimsoll_agent.workloads import reader_of
from plimsoll_service.domain.gpu import ClassDaySum, gpu_minute_of
from plimsoll_service.wire.gpu import ClassDay
from plimsoll_service.wire.snapshot import Snapshot
from plimsoll_testbed.rigs.gpus.workloads import BEGIN, NODES, WORKLOADS, Json, Workload, objects

DAYS: Final = 7
HOUR: Final = timedelta(hours=1)
"""For so long nothing changes: the agent's reading stands for each of its minutes."""
_MINUTE: Final = timedelta(minutes=1)
_TOTAL_MIB: Final = 81_559


def class_days() -> Sequence[ClassDay]:
    """Return what the service keeps of the week."""
    found = ClassDaySum()
    for hour in range(timedelta(days=DAYS) // HOUR):
        at = BEGIN + hour * HOUR
        minute = gpu_minute_of(_snapshot(at))
        assert minute is not None  # noqa: S101 - pods hold GPUs all week
        for later in range(HOUR // _MINUTE):
            found.add(at + later * _MINUTE, minute)
    return found.days


def _snapshot(at: datetime) -> Snapshot:
    """Return what the agent tells of the fleet at a time."""
    by_kind: dict[str, list[Json]] = {}
    for each in objects(at):
        by_kind.setdefault(each["kind"], []).append(each)
    nodes = [*map(read_node, by_kind["Node"])]
    pods = [*map(read_pod, by_kind["Pod"])]
    known = Known(nodes, pods)
    samples = [
        sample
        for name in NODES
        for sample in gpu_samples(
            series_of(exposition(name, at).encode()), known, known.names_of(name), name
        ).samples
    ]
    seen = Seen(
        kubernetes="v1.36",
        nodes=nodes,
        pods=pods,
        controllers=[*map(reader_of("ReplicaSet"), by_kind["ReplicaSet"])],
        namespaces={},
        volumes=(),
        volume_types={},
        budgets=(),
        autoscalers=(),
        balanced=(),
        endpoints=(),
        node_usage={},
        pod_usage={},
        limit_ranges=None,
        gpus=GpuReading(samples=samples),
    )
    return full_snapshot(seen, cluster_id="lab", epoch="lab", sequence=1, now=at)


def exposition(node: str, at: datetime) -> str:
    """Return what dcgm-exporter of a node prints.

    https://github.com/NVIDIA/dcgm-exporter/blob/main/README.md
    """
    lines = []
    gpu = 0
    for of in WORKLOADS:
        for number in range(of.pods) if of.node == node else ():
            for _ in range(of.gpus):
                labels = _labels(node, gpu, of.uid(number, at))
                lines += [f"{name}{labels} {v}" for name, v in _told(of, number, gpu, at).items()]
                gpu += 1
    return "\n".join([*lines, ""])


def _labels(node: str, gpu: int, pod: str) -> str:
    said = {
        "gpu": gpu,
        "UUID": f"GPU-{node}-{gpu}",
        "device": f"nvidia{gpu}",
        "modelName": "NVIDIA H100 80GB HBM3",
        "Hostname": node,
        "container": "main",
        "namespace": "lab",
        "pod": pod,
    }
    return "{" + ",".join(f'{name}="{value}"' for name, value in said.items()) + "}"


def _told(of: Workload, number: int, gpu: int, at: datetime) -> Mapping[str, float]:
    """Return the metrics that are on by default, a little below what its workload says at most."""
    drawn = crc32(f"{of.uid(number, at)} {gpu} {at}".encode()) / 2**32
    works = of.works(at)
    held = of.held_mib(number, at)
    used = round(held - drawn * held / 20)
    active = of.duty * (1 - drawn / 5) / 100 if works else 0.0
    return {
        "DCGM_FI_DEV_GPU_UTIL": round(active * 100),
        "DCGM_FI_DEV_FB_USED": used,
        "DCGM_FI_DEV_FB_FREE": _TOTAL_MIB - used,
        "DCGM_FI_DEV_POWER_USAGE": round(70 + 630 * active, 3),
        "DCGM_FI_DEV_XID_ERRORS": 0,
        "DCGM_FI_PROF_GR_ENGINE_ACTIVE": round(active, 6),
        "DCGM_FI_PROF_DRAM_ACTIVE": of.dram / 100 if works else 0.0,
    }
