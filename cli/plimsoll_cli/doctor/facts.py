"""What was read of an installation. Where something could not be read, its error stands instead."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from plimsoll.adapters.kubernetes.dry_runs import Trial
from plimsoll.domain.capacity import VcpuQuota
from plimsoll.domain.errors import PlimsollError
from plimsoll.domain.kubernetes import Node
from plimsoll.domain.node_groups import NodeGroup
from plimsoll.domain.observation import Observation
from plimsoll.domain.registry import Cluster, IndexEntry
from plimsoll_cli.doctor.iam_requests import Case
from plimsoll_cli.stack import Stack

type Asked[T] = T | PlimsollError


def read_or_raise[T](asked: Asked[T]) -> T:
    """Return what was read, or raise what kept it from being read."""
    if isinstance(asked, PlimsollError):
        raise asked
    return asked


@dataclass(frozen=True, slots=True, kw_only=True)
class Arrival:
    """A canary, and what became of it."""

    sent: datetime
    seen: datetime | None
    """When the function saw it; None: not as long as we waited."""
    waited_seconds: float


class Direct(StrEnum):
    """What became of a message that was sent to the queue of notices past the rules."""

    TAKEN = "taken"
    BY_THE_QUEUE = "denied by the policy of the queue"
    OTHERWISE = "denied, but not by the queue"


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    """How a rule delivers what it matches."""

    rule: str
    seconds: int | None
    """For how long it tries; None: for a day."""
    dead_letters: str | None
    """The ARN of the queue that takes what could not be delivered."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Right:
    """A right in the cluster that Plimsoll uses, and whether it is held."""

    verb: str
    resource: str
    """With its group, as in `apps/deployments`."""
    only_in: str | None
    held: bool

    @property
    def writes(self) -> bool:
        """Whether it is used only where Plimsoll acts."""
        return self.verb not in {"get", "list", "watch"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Queue:
    """Through which queue of the API server our requests go."""

    uid: str | None
    """Of our FlowSchema; None: there is none."""
    used: str | None
    """UID of the FlowSchema that our request was put under; None: the API server does not say."""
    dangling: bool
    """Whether our FlowSchema names a priority level that is not there."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupSettings:
    """What an Auto Scaling group's owner says of it."""

    suspended: frozenset[str]
    """Processes that are suspended, for example Launch."""
    slow: str | None = None
    """Why it launches nothing at once and has its desired capacity raised; None: it can."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Simulated:
    """A request of one of the stack's roles, and the decision of IAM."""

    case: Case
    decision: str
    """As SimulatePrincipalPolicy names it: `allowed`, `explicitDeny` or `implicitDeny`."""

    @property
    def right(self) -> bool:
        """Whether IAM allows what must be allowed, and denies the rest."""
        return (self.decision == "allowed") is self.case.allowed


@dataclass(frozen=True, slots=True, kw_only=True)
class Concurrency:
    """How many functions Lambda runs at once in the account and region of a stack."""

    quota: int
    unreserved: int
    """Of the quota, the part that is reserved for no function."""
    reserved: Mapping[str, int | None]
    """Function, by the output of the stack -> its reserve; None: it has none."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Drainer:
    """A program in the cluster that is known to drain nodes."""

    name: str
    namespace: str
    drains: bool
    """Whether it is set to evict pods of interrupted nodes."""
    queue: str | None = None
    """Name of the queue from which Karpenter hears of interruptions."""
    version: tuple[int, int] | None = None
    """Major and minor, where the tag of its image names them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Webhook:
    """An admission webhook that is asked about pods or evictions."""

    name: str
    evictions: bool
    """Whether it is asked about evictions; else about new or changed pods only."""
    fails: bool
    """Whether its failure refuses the request (`failurePolicy: Fail`)."""
    seconds: int
    """How long it may take to answer."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AdmissionPolicies:
    """What holds the identities of the manifests."""

    digests: Mapping[str, str]
    """Policy that is bound and denies -> what tells its version."""
    roles: frozenset[str]
    """The names of all ClusterRoles."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Facts:
    """All that was read, at one moment."""

    now: datetime
    version: str
    """Of this command."""
    stack: Stack
    cluster: Cluster
    canary: Asked[Arrival]
    direct: Asked[Direct]
    targets: Asked[Sequence[Target]]
    answer: Asked[str]
    """The version of the cluster's API server."""
    rights: Asked[Sequence[Right]]
    trials: Asked[Sequence[Trial]]
    policies: Asked[AdmissionPolicies]
    queue: Asked[Queue]
    drainers: Asked[Sequence[Drainer]]
    queue_delays: Mapping[str, Asked[int]]
    """Queue of Karpenter -> for how many seconds it holds a message back."""
    marks: Asked[Mapping[str, int]]
    """Who drains nodes just now, as their taints, labels and cordons say -> how many."""
    guards: Asked[int]
    """How many budgets of the standing guard there are."""
    unknown_roles: Asked[Sequence[str]]
    """The roles of the stack that the EKS cluster does not put into our group."""
    nodes: Asked[Sequence[Node]]
    index: Asked[Mapping[str, IndexEntry]]
    groups: Asked[Sequence[NodeGroup]]
    group_settings: Asked[Mapping[str, GroupSettings]]
    """By the name of the Auto Scaling group."""
    seen: Asked[Observation]
    webhooks: Asked[Sequence[Webhook]]
    quota: Asked[VcpuQuota]
    addresses: Asked[Mapping[str, int]]
    """Subnet of a node group -> its free addresses."""
    images: Asked[Collection[str]]
    """Of the images that node groups name, those that exist."""
    simulated: Asked[Sequence[Simulated]]
    concurrency: Asked[Concurrency]
