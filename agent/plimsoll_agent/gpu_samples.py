"""Series of dcgm-exporter read into what a snapshot tells of GPUs.

Tenants may forge them: a series counts for a node that it may tell of, and for a pod on that node, or not at all.
https://docs.nvidia.com/datacenter/cloud-native/gpu-telemetry/latest/dcgm-exporter.html
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from math import ceil, isfinite
from typing import Final

from msgspec import ValidationError

from plimsoll.domain.kubernetes import OwnerKind
from plimsoll_agent.wire_values import LONGEST_TEXT, within_bounds
from plimsoll_service.wire import snapshot as wire
from plimsoll_service.wire.gpu import SAMPLED, GpuSample, Sharing, model_of

_ENGINE: Final = "DCGM_FI_PROF_GR_ENGINE_ACTIVE"
_UTIL: Final = "DCGM_FI_DEV_GPU_UTIL"
_USED, _FREE, _RESERVED = (f"DCGM_FI_DEV_FB_{each}" for each in ("USED", "FREE", "RESERVED"))
_SM, _DRAM = "DCGM_FI_PROF_SM_ACTIVE", "DCGM_FI_PROF_DRAM_ACTIVE"
_POWER, _XID = "DCGM_FI_DEV_POWER_USAGE", "DCGM_FI_DEV_XID_ERRORS"
_SCALES: Final[Mapping[str, tuple[int, int]]] = {
    **dict.fromkeys((_ENGINE, _SM, _DRAM), (1000, 1000)),
    _UTIL: (10, 1000),
    **dict.fromkeys((_USED, _FREE, _RESERVED), (1, 2**24)),
    **dict.fromkeys((_POWER, _XID), (1, 2**16)),
}
"""How many of our units one of theirs is, and the most that is believed."""
_NODE: Final = ("Hostname", "node")
_HOSTNAME: Final = "kubernetes.io/hostname"
_PRODUCT: Final = "nvidia.com/gpu.product"
_STRATEGY: Final = "nvidia.com/gpu.sharing-strategy"
_SHARED: Final[Mapping[str, Sharing]] = {"time-slicing": "time-slicing", "mps": "mps"}

type _Key = tuple[str, str, str, str]
"""The node, the UUID of the GPU, the id of its instance, and the uid of the pod."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Series:
    """The value that a series has now."""

    metric: str
    labels: Mapping[str, str]
    value: float


@dataclass(slots=True)
class Read:
    """What series told."""

    samples: list[GpuSample] = field(default_factory=list)
    foreign: int = 0
    """Series of nodes that are not theirs to tell of, without the UUID of a GPU, or with a label that is no name."""


class Known:
    """The nodes and pods that series may be about."""

    def __init__(self, nodes: Sequence[wire.Node], pods: Iterable[wire.Pod]) -> None:
        self.nodes = {node.name: node for node in nodes}
        self._full = {name: node for node in self.nodes for name in self._full_names(node)}
        shorts = _unique((_short(name), node) for name, node in self._full.items())
        self.names = shorts | self._full
        """How series may call a node -> its name. A short name that two nodes share is none."""
        self._pods = dict[tuple[str, str, str], str]()
        daemons = list[tuple[str, str]]()
        for pod in pods:
            daemon = pod.owner is not None and pod.owner.kind == OwnerKind.DAEMON_SET
            # Where Prometheus relabels, `pod` is the exporter's own on a GPU that nobody has.
            if pod.gpus or not daemon:
                self._pods[pod.node, pod.namespace, pod.name] = pod.uid
            if daemon and pod.node in self.nodes:
                daemons.append((pod.name, pod.node))
        self._daemons = _unique(daemons)
        """Pod of a DaemonSet, as the exporter's -> its node."""

    def _full_names(self, node: str) -> set[str]:
        return {self.nodes[node].labels.get(_HOSTNAME, node), node}

    def names_of(self, node: str) -> dict[str, str]:
        """Return the names by which series may call one node."""
        full = self._full_names(node)
        return dict.fromkeys((*full, *map(_short, full)), node)

    def called(self, labels: Mapping[str, str]) -> Iterator[str]:
        """Yield what a series calls its node, also in short where that is the whole name of a node."""
        for said in (labels[name] for name in _NODE if labels.get(name)):
            yield said
            if _short(said) in self._full:
                yield _short(said)

    def scraped_on(self, labels: Mapping[str, str]) -> set[str]:
        """Return the nodes that the labels of its target lead to, which Prometheus itself adds to a series.

        In a pod's own network namespace the exporter calls itself by its pod.
        https://github.com/NVIDIA/dcgm-exporter/issues/78
        """
        host = labels.get("instance", "").rpartition(":")[0]
        found = {self.names.get(each) for each in (host, f"ip-{host.replace('.', '-')}")}
        found |= {self._daemons.get(labels.get(each, "")) for each in ("pod", "Hostname")}
        return {node for node in found if node is not None}

    def pod_of(self, node: str, labels: Mapping[str, str]) -> str:
        """Return the uid of the pod that has the GPU of a series; empty: none that is known."""
        prefix = "exported_" if "exported_pod" in labels else ""
        namespace, name = (labels.get(f"{prefix}{each}", "") for each in ("namespace", "pod"))
        return self._pods.get((node, namespace, name), "")


def gpu_samples(
    series: Iterable[Series], known: Known, names: Mapping[str, str], default: str | None
) -> Read:
    """Return what series tell of GPUs.

    Args:
        series: Of any metric; those that are not asked for are stepped over.
        known: Which nodes and pods there are.
        names: How series may call a node -> its name; of others they may not tell.
        default: The node of a series that names none; None: they come through Prometheus, and the labels of their
            target tell too.
    """
    found, read = defaultdict[_Key, dict[str, int]](dict), Read()
    about: dict[_Key, Mapping[str, str]] = {}
    for each in series:
        if each.metric not in _SCALES:
            continue
        node, labels = _node_of(each.labels, known, names, default), each.labels
        gpu, instance = labels.get("UUID", ""), labels.get("GPU_I_ID", "")
        if node is None or not gpu or max(map(len, labels.values())) > LONGEST_TEXT:
            read.foreign += 1
            continue
        value = _value(each)
        if value is None:
            continue
        key = (node, gpu, instance, known.pod_of(node, labels))
        told = found[key]
        told[each.metric] = max(value, told.get(each.metric, 0))
        about.setdefault(key, labels)
    for key, told in found.items():
        try:
            sample = _sample(key, told, about[key], known.nodes[key[0]])
            read.samples.append(within_bounds(sample))
        except ValidationError:
            read.foreign += 1
    return read


def missing_from(samples: Sequence[GpuSample]) -> Sequence[str]:
    """Return the metrics that no sample has, by their DCGM names."""
    return [m for f, m in SAMPLED.items() if all(getattr(each, f) is None for each in samples)]


def _node_of(
    labels: Mapping[str, str], known: Known, names: Mapping[str, str], default: str | None
) -> str | None:
    """Return the node that a series is about; None where its labels lead to no node, or to several."""
    called = [*known.called(labels)]
    if not called and default is not None:
        return default
    meant = {names[each] for each in called if each in names}
    if default is None:
        meant |= known.scraped_on(labels)
    return meant.pop() if len(meant) == 1 else None


def _unique(pairs: Iterable[tuple[str, str]]) -> dict[str, str]:
    """Return what each name stands for; a name of several things stands for none."""
    found = defaultdict[str, set[str]](set)
    for name, of in pairs:
        found[name].add(of)
    return {name: next(iter(of)) for name, of in found.items() if len(of) == 1}


def _short(name: str) -> str:
    """Return a host name without its domain; an address is none."""
    short = name.partition(".")[0]
    return name if short.isdigit() else short


def _value(series: Series) -> int | None:
    scale, most = _SCALES[series.metric]
    if not isfinite(series.value) or not 0 <= series.value * scale <= most:
        return None
    return ceil(series.value * scale)


def _sample(
    key: _Key, told: Mapping[str, int], labels: Mapping[str, str], node: wire.Node
) -> GpuSample:
    name, gpu, instance, pod = key
    used, free = told.get(_USED), told.get(_FREE)
    total = None if used is None or free is None else used + free + told.get(_RESERVED, 0)
    product = node.labels.get(_PRODUCT, "") or labels.get("modelName", "")
    return GpuSample(
        node=name,
        gpu=gpu,
        model=model_of(product) or "unknown",
        instance=labels.get("GPU_I_PROFILE", ""),
        instance_id=instance,
        sharing=_SHARED.get(node.labels.get(_STRATEGY, ""), "none"),
        pod=pod,
        # GPU_UTIL is of the whole GPU, also where it stands on an instance.
        duty=told.get(_ENGINE, None if instance else told.get(_UTIL)),
        sm_active=told.get(_SM),
        dram_active=told.get(_DRAM),
        memory_used_mib=used,
        memory_total_mib=total,
        power_w=told.get(_POWER),
        last_xid=told.get(_XID),
    )
