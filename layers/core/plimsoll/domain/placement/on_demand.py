"""On-demand floors: how many replicas of a workload must stand on on-demand nodes, and how they do.

A topology spread over `1 + m` groups of nodes, one of them on-demand, keeps at least
`N // (m + 1)` of N replicas on each, with `maxSkew: 1`. So the floor `k` holds for every `m` up to
`N // k - 1`, and the largest `m` puts the most replicas on spot.
https://kubernetes.io/docs/concepts/scheduling-eviction/topology-spread-constraints/
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from plimsoll.domain.errors import BadInput
from plimsoll.domain.kubernetes import (
    KUBE_SYSTEM,
    MIN_ON_DEMAND,
    OwnerKind,
    Ref,
    Workload,
    resolve_count,
)

MOST_GROUPS: Final = 3
"""More spot groups leave little to gain: with three of them a quarter stands on on-demand."""
_NUMBER: Final = re.compile(r"[0-9]{1,9}")
_KINDS: Final = frozenset({OwnerKind.DEPLOYMENT, OwnerKind.STATEFUL_SET})


class Way(StrEnum):
    """How a floor is kept."""

    FREE = "free"
    """There is no floor: the pods need no constraint."""
    SPREAD = "spread"
    """A topology spread constraint over on-demand and the spot groups."""
    AFFINITY = "affinity"
    """Node affinity: every replica stands on on-demand."""


@dataclass(frozen=True, slots=True, kw_only=True)
class OnDemandFloor:
    """What a workload's floor asks of its pods."""

    workload: Ref
    replicas: int
    """What the arithmetic counts with: the autoscaler's minimum, else the declared count."""
    asked: int
    """How many its owner asked for."""
    keep: int
    """How many replicas must stand on on-demand: at most `replicas`."""
    way: Way
    spot_groups: int
    """Over how many spot groups the rest is spread; 0 of SPREAD: a single replica, see `reserve`."""
    reason: str


def floor_of(
    workload: Workload, *, namespaces: Mapping[str, str] | None = None, default: str = "0"
) -> OnDemandFloor:
    """Return the on-demand floor of a workload.

    Args:
        workload: only Deployments and StatefulSets have a floor.
        namespaces: namespace -> what its annotation says, for workloads without one.
        default: the cluster's, for namespaces without one, but not for kube-system.

    Raises:
        BadInput: what the owner wrote is neither a number of pods nor a percentage.
    """
    ref = workload.ref
    default = "0" if ref.namespace == KUBE_SYSTEM else default
    said = workload.annotations.get(MIN_ON_DEMAND) or (namespaces or {}).get(ref.namespace, default)
    replicas = workload.replicas if workload.min_replicas is None else workload.min_replicas
    try:
        asked = resolve_count(
            int(said) if _NUMBER.fullmatch(said) else said, replicas, round_up=True
        )
    except BadInput as error:
        raise BadInput(f"{ref}: the annotation {MIN_ON_DEMAND}: {error}") from error
    keep = min(asked, replicas) if ref.kind in _KINDS else 0

    def floor(way: Way, reason: str, spot_groups: int = 0) -> OnDemandFloor:
        return OnDemandFloor(
            workload=ref,
            replicas=replicas,
            asked=asked,
            keep=keep,
            way=way,
            spot_groups=spot_groups,
            reason=reason,
        )

    if keep < 1:
        return floor(Way.FREE, "it asks for no replica on on-demand")
    volumes = bool(workload.scheduling.claims) or workload.claim_templates
    if replicas == asked == 1 and said != "100%" and not volumes:
        return floor(Way.SPREAD, "a single replica may stand on spot while on-demand can take it")
    spot_groups = min(MOST_GROUPS, replicas // keep - 1)
    if asked > replicas:
        why = f"it asks for {asked} on on-demand and has {replicas} replicas"
    elif keep == replicas:
        why = f"all {replicas} replicas must stand on on-demand"
    elif volumes:
        why = "its volumes live in one zone, where the emptiest group may have no node"
    elif spot_groups < 1:
        why = f"an even half of {replicas} replicas is fewer than {keep}"
    else:
        return floor(
            Way.SPREAD,
            f"{replicas} replicas over {spot_groups + 1} groups leave at least "
            f"{replicas // (spot_groups + 1)} on on-demand, and {keep} are asked for",
            spot_groups,
        )
    return floor(Way.AFFINITY, why)
