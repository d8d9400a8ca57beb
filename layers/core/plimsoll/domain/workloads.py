"""Workloads and what limits their disruption, as the planner sees them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from plimsoll.domain.pods import Ref, Scheduling, Selector


@dataclass(frozen=True, slots=True, kw_only=True)
class Workload:
    """A Deployment, a StatefulSet or a ReplicaSet without an owner."""

    ref: Ref
    uid: str
    resource_version: str
    labels: Mapping[str, str] = field(default_factory=dict)
    annotations: Mapping[str, str] = field(default_factory=dict)
    selector: Selector
    replicas: int
    """`spec.replicas`: with our temporary change in it, where there is one."""
    max_unavailable: int | str = "25%"
    max_surge: int | str = "25%"
    strategy: str = "RollingUpdate"
    """RollingUpdate, Recreate or OnDelete."""
    rolling_out: bool = False
    """A rollout is under way (status lags behind spec, or old pods remain)."""
    ordered: bool = True
    """A StatefulSet with podManagementPolicy OrderedReady."""
    scheduling: Scheduling
    managers: tuple[str, ...] = ()
    """Field managers of `spec.replicas` (and of the whole object where it cannot be told)."""
    scaler: str | None = None
    """The name of the HorizontalPodAutoscaler that owns the count."""
    paused: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Budget:
    """A PodDisruptionBudget and its status."""

    ref: Ref
    selector: Selector
    min_available: int | str | None = None
    max_unavailable: int | str | None = None
    disruptions_allowed: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Claim:
    """A PersistentVolumeClaim with what its volume demands of a node."""

    namespace: str
    name: str
    bound: bool
    node_requirements: tuple[tuple[str, tuple[str, ...]], ...] = ()
    """(label key, allowed values) out of the PersistentVolume's node affinity: usually its zone."""
    single_node: bool = True
    """ReadWriteOnce or ReadWriteOncePod: two pods on two nodes cannot both have it."""
