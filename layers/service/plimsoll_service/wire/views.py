"""What people read of their clusters. Each view says of when it is."""

from __future__ import annotations

from datetime import datetime

from msgspec import Struct

from plimsoll_service.wire.snapshot import Amounts


class Part(Struct, frozen=True, kw_only=True):
    """Part of a view."""


class View(Part, frozen=True, kw_only=True):
    """Part of a cluster, by its newest snapshot."""

    cluster_id: str
    taken_at: datetime
    age_s: int
    left_out: int = 0
    """Rows that the answer has no room for."""


class WorkloadRow(Part, frozen=True, kw_only=True):
    """A workload."""

    kind: str
    namespace: str
    name: str
    replicas: int
    ready: int
    on_spot: int
    """How many of its pods are on spot nodes."""
    requests: Amounts
    """Of one pod."""
    used_cpu_m: int | None = None
    """The 95th percentile of one pod in the last day; None: it was not measured."""
    used_memory: int | None = None


class Workloads(View, frozen=True, kw_only=True):
    """The workloads of a cluster."""

    workloads: tuple[WorkloadRow, ...]
    """By namespace and name; of too many, those that ask for most."""
    usage_left_out: int = 0
    """Workloads whose usage is not kept, because the cluster has too many: those that ask for least."""


class InterruptedNode(Part, frozen=True, kw_only=True):
    """A node that is marked as one that goes."""

    node: str
    provider_id: str
    taint: str
    """What marks it: Plimsoll's taint, or that of another handler."""
    reason: str
    pods: int
    """How many are on it still."""


class Interruptions(View, frozen=True, kw_only=True):
    """The nodes of a cluster that are marked as going."""

    interruptions: tuple[InterruptedNode, ...]


class Pool(Part, frozen=True, kw_only=True):
    """A capacity pool that the cluster has nodes of."""

    instance_type: str
    zone: str
    capacity: str
    nodes: int
    allocatable: Amounts
    requested: Amounts


class Period(Part, frozen=True, kw_only=True):
    """An hour or a day of a cluster: means over its snapshots."""

    start: datetime
    snapshots: int
    nodes: float
    spot_nodes: float
    pods: float
    pending: float
    allocatable: Amounts
    requested: Amounts
    used: Amounts
    """By pods, as far as the cluster measures it."""


class Periods(Part, frozen=True, kw_only=True):
    """Hours or days of a cluster, in their order."""

    cluster_id: str
    since: datetime
    """Ask for what is before it to read on."""
    periods: tuple[Period, ...]


class Pools(View, frozen=True, kw_only=True):
    """The capacity pools of a cluster."""

    pools: tuple[Pool, ...]
