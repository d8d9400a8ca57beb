"""A cluster as the registry knows it."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import datetime
from enum import StrEnum
from typing import Self


class Mode(StrEnum):
    """Whether Plimsoll may write to a cluster. Every cluster starts as OBSERVE."""

    OBSERVE = "observe"
    ACT = "act"


class ClusterKind(StrEnum):
    """How a cluster is reached."""

    EKS = "eks"
    """By name: endpoint and CA from DescribeCluster, a presigned STS token."""
    ENDPOINT = "endpoint"
    """By endpoint and CA, with a bearer token out of Secrets Manager."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Cluster:
    """One registered cluster."""

    name: str
    kind: ClusterKind
    mode: Mode = Mode.OBSERVE
    region: str
    endpoint: str | None = None
    """https://…, for ENDPOINT; an http endpoint is taken on loopback only."""
    ca: str | None = None
    """The CA certificate in PEM, for ENDPOINT."""
    secret: str | None = None
    """Name or ARN of the secret with the token, for ENDPOINT. Never the token itself."""
    added: datetime

    def with_mode(self, mode: Mode) -> Self:
        """Return the same cluster in another mode."""
        return replace(self, mode=mode)


@dataclass(frozen=True, slots=True, kw_only=True)
class IndexEntry:
    """One line of the node index: which node of which cluster an instance is."""

    instance: str
    cluster: str
    node: str
    launched: datetime | None = None
    zone: str | None = None
    instance_type: str | None = None
    seen: datetime
    """When the resync last saw it; an old entry is dropped."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Instance:
    """What EC2 says about an instance."""

    id: str
    state: str
    """pending, running, stopping, stopped, shutting-down or terminated."""
    launched: datetime | None
    zone: str | None = None
    instance_type: str | None = None
    spot: bool = False
    tags: tuple[tuple[str, str], ...] = ()
    ended_by_owner: bool = False
    """Somebody with rights in the account stopped or terminated it, a group's scale-in too."""

    @property
    def interrupted(self) -> bool:
        """Whether its end has begun or is past."""
        return self.state in {"stopping", "stopped", "shutting-down", "terminated"}

    def cluster_name(self) -> str | None:
        """Return the cluster that its tags name.

        Managed node groups tag `eks:cluster-name`, others by convention
        `kubernetes.io/cluster/<name>` with `owned` or `shared`.
        """
        tags = dict(self.tags)
        for key in ("eks:cluster-name", "aws:eks:cluster-name"):
            if tags.get(key):
                return tags[key]
        prefix = "kubernetes.io/cluster/"
        owned = sorted(k.removeprefix(prefix) for k in tags if k.startswith(prefix))
        return owned[0] if owned else None
