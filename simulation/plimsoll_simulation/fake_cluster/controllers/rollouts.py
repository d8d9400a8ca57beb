"""The arithmetic of a rollout: how many replicas each ReplicaSet of a Deployment should have.

Source: k8s.io/kubernetes/pkg/controller/deployment/{rolling,sync}.go and util/deployment_util.go
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import ceil, floor

from plimsoll_simulation.fake_cluster.edits import Json, look


def scaled(value: int | str, of: int, *, up: bool) -> int:
    """Return a count, or a percentage of a count rounded up or down."""
    if isinstance(value, int):
        return value
    share = int(value.removesuffix("%")) * of / 100
    return ceil(share) if up else floor(share)


@dataclass(frozen=True, slots=True, kw_only=True)
class Bounds:
    """What a rolling update may do to a Deployment of `replicas`."""

    replicas: int
    surge: int
    unavailable: int

    @property
    def most(self) -> int:
        """Return the most pods there may be."""
        return self.replicas + self.surge

    @property
    def least(self) -> int:
        """Return the fewest pods that must be available."""
        return self.replicas - self.unavailable


def bounds_of(deployment: Json) -> Bounds:
    """Return the bounds; both of zero would never move, so one may then be unavailable.

    Source: ResolveFenceposts.
    """
    replicas = deployment["spec"]["replicas"]
    rolling = look(deployment, "spec", "strategy", "rollingUpdate")
    if rolling is None:
        return Bounds(replicas=replicas, surge=0, unavailable=replicas)
    surge = scaled(rolling.get("maxSurge", 0), replicas, up=True)
    unavailable = scaled(rolling.get("maxUnavailable", 0), replicas, up=False)
    if surge == 0 and unavailable == 0:
        unavailable = 1
    return Bounds(replicas=replicas, surge=surge, unavailable=min(unavailable, replicas))


def least_available(deployment: Json) -> int:
    """Return how many must be available for the condition Available: with Recreate, all.

    Source: MaxUnavailable, as calculateStatus uses it.
    """
    if look(deployment, "spec", "strategy", "type") == "Recreate":
        return int(deployment["spec"]["replicas"])
    return bounds_of(deployment).least


@dataclass(frozen=True, slots=True, kw_only=True)
class Share:
    """One ReplicaSet of a Deployment."""

    name: str
    replicas: int
    available: int
    most_before: int = 0
    """What its Deployment could have had at most when it was last scaled (max-replicas)."""


def grown(new: Share, shares: Sequence[Share], bounds: Bounds) -> int:
    """Return how many the newest ReplicaSet should have now. Source: NewRSNewReplicas."""
    if new.replicas >= bounds.replicas:
        return bounds.replicas
    headroom = bounds.most - sum(s.replicas for s in shares)
    return new.replicas + max(0, min(headroom, bounds.replicas - new.replicas))


def shrunk(new: Share, old: Sequence[Share], bounds: Bounds) -> Mapping[str, int]:
    """Return how many each old ReplicaSet, oldest first, should have now.

    Those that are not available go first, as long as as many are left as must be available.

    Source: reconcileOldReplicaSets, cleanupUnhealthyReplicas,
    scaleDownOldReplicaSetsForRollingUpdate.
    """
    sizes = {s.name: s.replicas for s in old}
    total = new.replicas + sum(sizes.values())
    budget = total - bounds.least - (new.replicas - new.available)
    if budget <= 0:
        return sizes
    for share in old:
        unhealthy = min(budget, share.replicas - share.available)
        sizes[share.name] -= max(0, unhealthy)
        budget -= max(0, unhealthy)
    spare = new.available + sum(s.available for s in old) - bounds.least
    for share in old:
        healthy = max(0, min(spare, sizes[share.name]))
        sizes[share.name] -= healthy
        spare -= healthy
    return sizes


def proportional(shares: Sequence[Share], bounds: Bounds, before: int) -> Mapping[str, int]:
    """Return the sizes after a Deployment was scaled in the middle of a rollout.

    Args:
        shares: the ReplicaSets that have replicas, the largest first.
        bounds: of the Deployment as it is now.
        before: what it has, where a ReplicaSet does not know what it could have had.

    Source: https://kubernetes.io/docs/concepts/workloads/controllers/deployment/#proportional-scaling
    """
    allowed = bounds.most if bounds.replicas > 0 else 0
    change = allowed - sum(s.replicas for s in shares)
    sizes, added = {s.name: s.replicas for s in shares}, 0
    for share in shares:
        most = share.most_before or before
        if bounds.replicas == 0:
            part = -share.replicas
        elif most == 0:
            part = 0
        else:
            part = floor(share.replicas * bounds.most / most + 0.5) - share.replicas
        left = change - added
        part = min(part, left) if change > 0 else max(part, left)
        if change:
            sizes[share.name] += part
            added += part
    if shares and change:
        sizes[shares[0].name] = max(0, sizes[shares[0].name] + change - added)
    return sizes
