"""Workloads and what limits their disruption, as the planner sees them."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Final, Self

from plimsoll.domain.kubernetes.names import POD_TEMPLATE_HASH
from plimsoll.domain.kubernetes.pods import NodeTerm, Pod, Ref, Requirement, Scheduling, Selector
from plimsoll.domain.kubernetes.quantities import Resources
from plimsoll.domain.kubernetes.selectors import MATCHES_NOTHING, satisfied

_WEBHOOK: Final = re.compile(r'webhook "([^"]{1,253})"')
"""As the API server names one that denied a request, or did not answer."""
_QUOTA_USED_UP: Final = "exceeded quota"
"""Words of the API server."""


def webhook_in(refusal: str) -> str | None:
    """Return the admission webhook that a refusal of the API server names, if it names one."""
    named = _WEBHOOK.search(refusal)
    return named[1] if named else None


@dataclass(frozen=True, slots=True, kw_only=True)
class Workload:
    """A Deployment, an Argo Rollout, a StatefulSet or a ReplicaSet without an owner."""

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
    """RollingUpdate (also a Rollout's canary), Recreate, OnDelete or BlueGreen."""
    rolling_out: bool = False
    """A rollout is under way (status lags behind spec, or old pods remain)."""
    scheduling: Scheduling
    scaler: str | None = None
    """The name of the HorizontalPodAutoscaler that owns the count."""
    min_replicas: int | None = None
    """The least that its HorizontalPodAutoscaler scales it to while any run; from 1 on."""
    claim_templates: bool = False
    """A StatefulSet whose pods have volumes of their own."""
    first_ordinal: int = 0
    """Of a StatefulSet."""
    pinned_to: str | None = None
    """The node that its template names: kube-scheduler is not asked, and every pod of it comes back there."""
    scaled: datetime | None = None
    """When that last changed the count."""
    paused: bool = False
    min_ready_seconds: int = 0
    """How long a pod must be Ready until it counts as available."""
    replica_failure: str | None = None
    """Why its controller cannot make pods (condition ReplicaFailure), for example a quota."""
    failing_since: datetime | None = None
    """Since when."""
    split_by: str | None = None
    """What selects the pods of a Rollout by their hash and is no Service, in words."""
    template_of: Ref | None = None
    """Whose template and selector a Rollout uses (`workloadRef`), until these are filled in here."""

    @property
    def why_unmade(self) -> str | None:
        """Why its controller cannot make pods, in words: an admission webhook that blocks them by its name."""
        failure = self.replica_failure
        if failure is None or (webhook := webhook_in(failure)) is None:
            return failure
        return f"the admission webhook {webhook} blocks its new pods ({failure})"

    @property
    def makes_none(self) -> str | None:
        """Why its controller cannot make a pod even in the place of one that leaves; None where only a quota is used up."""
        failure = self.replica_failure
        return None if failure is None or _QUOTA_USED_UP in failure else self.why_unmade

    @property
    def held_replicas(self) -> int:
        """What its autoscaler lifts it to, seconds after somebody scaled it below the least; 0 stays.

        Source: https://kubernetes.io/docs/tasks/run-application/horizontal-pod-autoscale/#implicit-maintenance-mode-deactivation
        """
        return max(self.replicas, self.min_replicas or 0) if self.replicas else 0

    @property
    def unresolved(self) -> str | None:
        """Why nothing is known of its template and selector; None where they are."""
        return (
            None if self.template_of is None else f"its workloadRef {self.template_of} is not read"
        )

    def resolved(self, workloads: Mapping[Ref, Workload]) -> Workload:
        """Return the workload with the template and selector of the one that it refers to, if that is known.

        A selector of its own is kept. Source: argo-rollouts, controller/templateref.go
        """
        of = None if self.template_of is None else workloads.get(self.template_of)
        if of is None:
            return self
        own = self.selector is not MATCHES_NOTHING
        return replace(
            self,
            selector=self.selector if own else of.selector,
            scheduling=of.scheduling,
            pinned_to=of.pinned_to,
            template_of=None,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Namespace:
    """What a namespace says of its workloads."""

    name: str
    labels: Mapping[str, str] = field(default_factory=dict)
    floor: str | None
    promise: str | None = None
    """What it promises of its workloads that promise nothing themselves."""
    injects: bool
    """Whether the admission policy constrains its new pods."""
    guard: str | None = None
    """How all workloads in it are guarded that say nothing themselves."""
    obeys_budgets: bool = False
    """Whether its owner lets nobody delete a pod in it past its budget."""


def namespace_floors(namespaces: Iterable[Namespace]) -> Mapping[str, str]:
    """Return what namespaces say of on-demand floors, by name; those that say nothing are left out."""
    return {each.name: each.floor for each in namespaces if each.floor is not None}


def namespace_promises(namespaces: Iterable[Namespace]) -> Mapping[str, str]:
    """Return what namespaces promise of their workloads, by name; those that promise nothing are left out."""
    return {each.name: each.promise for each in namespaces if each.promise is not None}


def namespace_guards(namespaces: Iterable[Namespace]) -> Mapping[str, str]:
    """Return how namespaces say that all their workloads are guarded, by name; those that say nothing are left out."""
    return {each.name: each.guard for each in namespaces if each.guard is not None}


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplicaSet:
    """What a release needs to know of the ReplicaSet of a Deployment or Rollout."""

    ref: Ref
    uid: str
    label: str = POD_TEMPLATE_HASH
    """The label by which it counts its pods."""
    hash: str
    """The value of that label; empty where it has none."""
    controller: Ref
    controller_uid: str
    """As the ReplicaSet itself names it: garbage collection takes a reference with a wrong UID off."""
    revision: int = 0
    """The newest ReplicaSet of its controller has the highest; rolling back raises it too."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LabelSelection:
    """A Service or a NetworkPolicy: it selects pods by their labels."""

    ref: Ref
    selector: Selector
    node_ports: bool = False
    """Whether load balancers may send its requests to nodes."""
    local: bool = False
    """Whether a node hands such requests to its own pods only (`externalTrafficPolicy: Local`)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Quota:
    """A ResourceQuota, as far as it limits pods."""

    ref: Ref
    left: Resources
    """What pods may still request; what it does not limit is unlimited, or not named."""
    scopes: tuple[Requirement, ...] = ()
    """Which pods it binds: all of these hold, of a scope as of a label."""

    def binds(self, pod: Pod) -> bool:
        """Whether it counts a pod.

        https://kubernetes.io/docs/concepts/policy/resource-quotas/#quota-scopes
        """
        if not self.scopes:
            return True
        scheduling = pod.scheduling
        effort = scheduling.requests.cpu or scheduling.requests.memory
        terms = (*scheduling.affinity, *scheduling.anti_affinity)
        scopes = {
            "Terminating" if pod.terminates else "NotTerminating": "",
            "NotBestEffort" if effort else "BestEffort": "",
        }
        if pod.priority_class:
            scopes["PriorityClass"] = pod.priority_class
        if any(term.namespaces or term.namespace_selector is not None for term in terms):
            scopes["CrossNamespacePodAffinity"] = ""
        return all(satisfied(scope, scopes) for scope in self.scopes)

    def leaves(self, wanted: Resources) -> bool:
        """Whether pods may request so much more."""
        limited = dict(self.left.extended)
        named = tuple(each for each in wanted.extended if each[0] in limited)
        return replace(wanted, extended=named).within(self.left)


@dataclass(frozen=True, slots=True, kw_only=True)
class Budget:
    """A PodDisruptionBudget and its status."""

    ref: Ref
    uid: str = ""
    guards: bool = False
    """Whether it is ours: see `plimsoll.domain.disruptions.guard`."""
    selector: Selector
    min_available: int | str | None = None
    max_unavailable: int | str | None = None
    disruptions_allowed: int = 0
    missing: int = 0
    """How many healthy pods it lacks: with one more it would still let none go."""


type NodeRequirements = tuple[tuple[NodeTerm, ...], ...]
"""What volumes require of a node: of each of these, any term holds."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Volume:
    """A PersistentVolume."""

    name: str
    node_terms: tuple[NodeTerm, ...] | None = None
    """Where it can be used: any term holds, usually its zone. None: everywhere."""
    driver: str = ""
    """Its CSI driver."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StorageClass:
    """A StorageClass: where the volumes of claims that are not bound yet can come to be."""

    name: str
    node_terms: tuple[NodeTerm, ...] | None = None
    """On which nodes: any term holds (`allowedTopologies`). None: on every node; empty: on none, because a
    volume must be there before its pod is scheduled."""
    driver: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Claim:
    """A PersistentVolumeClaim with what its volume requires of a node."""

    namespace: str
    name: str
    volume: str = ""
    """The name of its PersistentVolume, once it is bound."""
    storage_class: str = ""
    node_terms: tuple[NodeTerm, ...] | None = None
    """Where its pods can run: any term holds. None: everywhere; empty: nowhere, as it is or will never be bound."""
    driver: str = ""
    """The CSI driver of its volume."""
    single_node: bool = True
    """ReadWriteOnce or ReadWriteOncePod: two pods on two nodes cannot both have it."""
    single_pod: bool = False
    """ReadWriteOncePod: no pod is scheduled while another one has it."""

    @property
    def bound(self) -> bool:
        """Whether it has a volume."""
        return bool(self.volume)

    def on(self, volume: Volume | None) -> Self:
        """Return the claim with the requirements of its volume; None is one that is not known."""
        if volume is None or self.node_terms == ():
            return self
        return replace(self, node_terms=volume.node_terms, driver=volume.driver)

    def of(self, storage_class: StorageClass | None) -> Self:
        """Return a claim that is not bound with the requirements of its class; None is one that is not there."""
        if self.bound or self.node_terms == ():
            return self
        if storage_class is None:
            return replace(self, node_terms=())
        return replace(self, node_terms=storage_class.node_terms, driver=storage_class.driver)
