"""A cluster as the registry knows it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import Final

from plimsoll.domain.interruptions import Policy
from plimsoll.domain.kubernetes import Resources

LABELLED_CLUSTERS: Final = 50
"""How many clusters, the first by name, have metrics of their own: each costs as much as one."""
OTHERS: Final = "others"
_ACCOUNT: Final = 4
"""Which part of an ARN names the account."""


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
    role: str | None = None
    """The ARN of the role that is assumed for it, where it is in another account than the stack."""
    external_id: str | None = None
    """What the owner of that role asks of who assumes it; given exactly when that is."""
    agent: str | None = None
    """The agent whose interruption taints are heard, by the id that the optimisation service gave it."""
    added: datetime
    policy: Policy = field(default_factory=Policy)

    @property
    def account(self) -> str | None:
        """The account that it is in; None: that of the stack."""
        return None if self.role is None else self.role.split(":")[_ACCOUNT]

    @property
    def place(self) -> str:
        """Its region; in another account than the stack's with that before it.

        Each account has names of its own for zones: us-east-1a of two need not be the same one.
        https://docs.aws.amazon.com/ram/latest/userguide/working-with-az-ids.html
        """
        return self.region if self.account is None else f"{self.account}/{self.region}"


@dataclass(frozen=True, slots=True, kw_only=True)
class IndexEntry:
    """One line of the node index: which node of which cluster an instance is."""

    instance: str
    cluster: str
    node: str
    launched: datetime | None = None
    zone: str | None = None
    instance_type: str | None = None
    requests: Resources = field(default_factory=Resources)
    """The sum over its pods that would have to leave it; their number is in `pods`."""
    seen: datetime
    """When the resync last saw it; an old entry is dropped."""


def labelled(clusters: Sequence[Cluster]) -> Iterator[tuple[Cluster, str]]:
    """Yield each cluster with the name that it has in metrics."""
    for number, cluster in enumerate(clusters):
        yield cluster, cluster.name if number < LABELLED_CLUSTERS else OTHERS
