"""Workloads and what limits their disruption, as the planner sees them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from plimsoll.domain.pods import Ref, Scheduling, Selector
from plimsoll.domain.quantities import Resources


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
    max_unavailable: int | str = "25%"
    max_surge: int | str = "25%"
    strategy: str = "RollingUpdate"
    """RollingUpdate, Recreate or OnDelete."""
    rolling_out: bool = False
    """A rollout is under way (status lags behind spec, or old pods remain)."""
    ordered: bool = True
    """A StatefulSet with podManagementPolicy OrderedReady."""
    scheduling: Scheduling
    scaler: str | None = None
    """The name of the HorizontalPodAutoscaler that owns the count."""
    paused: bool = False
    min_ready_seconds: int = 0
    """How long a pod must be Ready until it counts as available."""
    replica_failure: str | None = None
    """Why its controller cannot make pods (condition ReplicaFailure), for example a quota."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplicaSet:
    """What a release needs to know of the ReplicaSet of a Deployment."""

    ref: Ref
    uid: str
    hash: str
    """Its `pod-template-hash`; empty where it has none."""
    controller: Ref
    controller_uid: str
    """As the ReplicaSet itself names it: a wrong UID would let garbage collection kill the pod."""
    revision: int = 0
    """The Deployment's newest ReplicaSet has the highest; rolling back raises it too."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LabelSelection:
    """A Service or a NetworkPolicy: it selects pods by their labels."""

    ref: Ref
    selector: Selector


@dataclass(frozen=True, slots=True, kw_only=True)
class Quota:
    """A ResourceQuota, as far as it limits pods."""

    ref: Ref
    left: Resources
    """What pods may still request; what it does not limit is unlimited."""


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
