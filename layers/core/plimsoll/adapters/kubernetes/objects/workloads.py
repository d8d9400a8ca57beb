"""Controllers of pods, and what scales them."""

from __future__ import annotations

import re
from datetime import datetime
from typing import Any, Final

from msgspec import Raw

from plimsoll.adapters.kubernetes import schema
from plimsoll.adapters.kubernetes.decoding import SAID_CHARACTERS, decoded, naming
from plimsoll.adapters.kubernetes.objects.metadata import (
    LONGEST_GRACE,
    annotations_of,
    bounded,
    condition,
    holds,
    ref,
)
from plimsoll.adapters.kubernetes.scheduling import read_scheduling, read_selector
from plimsoll.domain.fields import Field
from plimsoll.domain.kubernetes import OwnerKind, Ref, ReplicaSet, Workload, names

_MOST_PODS: Final = 200_000
"""Kubernetes is built for clusters of 150,000: https://kubernetes.io/docs/setup/best-practices/cluster-large/"""
_REVISION: Final = re.compile(r"[0-9]{1,9}")


@naming("Deployment")
def parse_deployment(obj: Raw) -> Workload:
    """Read a Deployment. Scaling alone is no rollout: that is one while old pods remain."""
    read = decoded(obj, schema.Workload)
    spec, status, rolling = read.spec, read.status, read.spec.strategy.rolling_update
    failure = condition(status.conditions, "ReplicaFailure")
    return _workload(
        OwnerKind.DEPLOYMENT,
        read,
        max_unavailable="25%" if rolling.max_unavailable is None else rolling.max_unavailable,
        max_surge="25%" if rolling.max_surge is None else rolling.max_surge,
        strategy=spec.strategy.type,
        rolling_out=_lags(read) or status.replicas > status.updated_replicas,
        paused=spec.paused,
        failing_since=Field(
            failure.last_transition_time if failure else "", "status.conditions.lastTransitionTime"
        ).time_or_bound(),
        replica_failure=(failure.message or failure.reason or failure.type)[:SAID_CHARACTERS]
        if failure and holds(failure)
        else None,
    )


@naming("Rollout")
def parse_rollout(obj: Raw) -> Workload:
    """Read a Rollout of Argo Rollouts.

    https://argo-rollouts.readthedocs.io/en/stable/features/specification/
    """
    read = decoded(obj, schema.Rollout)
    spec, canary, template = read.spec, read.spec.strategy.canary, read.spec.workload_ref
    routing = canary.traffic_routing
    # The controller adds the hash to the selectors of these, as it does to those of its Services.
    by_hash = {
        "the subsets of an Istio DestinationRule": routing.istio.destination_rule,
        "the virtual nodes of App Mesh": routing.app_mesh.virtual_node_group,
    }
    return _workload(
        OwnerKind.ROLLOUT,
        read,
        max_unavailable="25%" if canary.max_unavailable is None else canary.max_unavailable,
        max_surge="25%" if canary.max_surge is None else canary.max_surge,
        strategy="BlueGreen" if spec.strategy.blue_green is not None else "RollingUpdate",
        rolling_out=read.status.stable != read.status.current_pod_hash,
        paused=spec.paused,
        split_by=next((what for what, named in by_hash.items() if named is not None), None),
        template_of=Ref(template.kind, read.metadata.namespace, template.name)
        if template
        else None,
    )


@naming("StatefulSet")
def parse_stateful_set(obj: Raw) -> Workload:
    """Read a StatefulSet. Revisions that differ below its partition are meant to, and no rollout.

    https://kubernetes.io/docs/concepts/workloads/controllers/statefulset/#update-strategies
    """
    read = decoded(obj, schema.Workload)
    status, update = read.status, read.spec.update_strategy
    unavailable = update.rolling_update.max_unavailable
    differ = status.current_revision != status.update_revision and update.type != "OnDelete"
    behind = status.updated_replicas < read.spec.replicas - update.rolling_update.partition
    return _workload(
        OwnerKind.STATEFUL_SET,
        read,
        max_unavailable=1 if unavailable is None else unavailable,
        max_surge=0,
        strategy=update.type,
        rolling_out=_lags(read) or (differ and behind),
        claim_templates=bool(read.spec.volume_claim_templates),
        first_ordinal=read.spec.ordinals.start,
    )


@naming("ReplicaSet")
def parse_any_replica_set(obj: Raw) -> ReplicaSet | Workload:
    """Read what a release needs to know of a ReplicaSet; as a workload where no Deployment or Rollout has it.

    Of a controller that nobody knows the count is not known, but that of its ReplicaSet is.
    """
    meta = decoded(obj, schema.Named).metadata
    controller = meta.controller
    if controller is None or controller.kind not in {OwnerKind.DEPLOYMENT, OwnerKind.ROLLOUT}:
        return _workload(OwnerKind.REPLICA_SET, decoded(obj, schema.Workload), rolling_out=False)
    revision = next((meta.annotations[r] for r in names.REVISIONS if r in meta.annotations), "0")
    label = next((key for key in names.HASHES if key in meta.labels), names.POD_TEMPLATE_HASH)
    return ReplicaSet(
        ref=ref("ReplicaSet", meta),
        uid=meta.uid,
        label=label,
        hash=meta.labels.get(label, ""),
        controller=Ref(controller.kind, meta.namespace, controller.name),
        controller_uid=controller.uid,
        revision=int(revision) if _REVISION.fullmatch(revision) else 0,
    )


@naming("HorizontalPodAutoscaler")
def parse_scaler(obj: Raw) -> tuple[Ref, tuple[str, int, datetime | None]]:
    """Read which workload an autoscaler scales, its own name, its least, and when it last did."""
    read = decoded(obj, schema.Scaler)
    meta, target = read.metadata, read.spec.scale_target_ref
    scaled = Field(read.status.last_scale_time, "status.lastScaleTime").optional_time()
    # 0 is allowed from Kubernetes 1.37 on, and says nothing about how few run while any do.
    least = max(1, bounded(read.spec.min_replicas, _MOST_PODS))
    return Ref(target.kind, meta.namespace, target.name), (meta.name, least, scaled)


def _workload(
    kind: OwnerKind,
    read: schema.Object[schema.WorkloadSpec, Any],
    **more: Any,
) -> Workload:
    meta, template = read.metadata, read.spec.template
    return Workload(
        ref=ref(kind.value, meta),
        uid=meta.uid,
        resource_version=meta.resource_version,
        labels=meta.labels,
        annotations=annotations_of(meta),
        selector=read_selector(read.spec.selector, "spec.selector"),
        replicas=bounded(read.spec.replicas, _MOST_PODS),
        scheduling=read_scheduling(template.spec, template.metadata.labels),
        pinned_to=template.spec.node_name or None,
        min_ready_seconds=bounded(read.spec.min_ready_seconds, LONGEST_GRACE),
        **more,
    )


def _lags(read: schema.Object[Any, schema.WorkloadStatus]) -> bool:
    return read.status.observed_generation < read.metadata.generation
