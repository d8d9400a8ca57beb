"""What waits in queues: gangs, which start as a whole or not at all, and what they run on once they do."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from hashlib import sha256
from typing import Final, Protocol, override

from plimsoll.domain.kubernetes import Resources, Scheduling
from plimsoll_batch.domain.jobs.job_annotations import MOST_REMEMBERED
from plimsoll_batch.domain.jobs.node_requests import NodeRequest

MOST_PRIORITY: Final = 10**9
"""As of a PriorityClass that is not of the system.
https://kubernetes.io/docs/concepts/scheduling-eviction/pod-priority-preemption/#priorityclass"""
_FIRST = datetime.min.replace(tzinfo=UTC)
type FlavorResource = tuple[str, str]
"""A resource flavor and a resource: what quota is counted by."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Role:
    """Pods of one template in a gang: one Job, such as its workers."""

    name: str
    pods: int
    scheduling: Scheduling
    labels: Mapping[str, str] = field(default_factory=dict)
    """Of its pods: their own affinity and spread constraints count by them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Topology:
    """That all pods of a gang stand in one domain: a zone, a rack, a node group."""

    label: str
    required: bool
    weights: tuple[tuple[str, int], ...] = ()
    """Domain -> weight: the heaviest that holds all of the gang is taken. One that is not named weighs 0."""

    def weight_of(self, domain: str) -> int:
        """Return how much speaks for a domain."""
        return dict(self.weights).get(domain, 0)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Shape:
    """What decides where a gang fits. Gangs of one shape share the object: it is known by identity.

    The planner checks a shape once where it is hopeless, however many gangs of it wait; so whoever reads
    gangs makes one `Shape` for all that are alike.
    """

    roles: tuple[Role, ...]
    topology: Topology | None = None
    leases: bool = False
    """It takes whole nodes, which are leased to it before it starts."""
    loses: timedelta | None = None
    """What an interruption costs it of its work, on average, where prices of flavors are compared; None: nobody says."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PreemptionRecord:
    """That a gang was stopped for another. A run of a gang is preempted once at most."""

    gang: str
    """Namespace and name of the gang that was stopped."""
    queue: str
    at: datetime
    by: str
    """Namespace and name of the gang that it was stopped for; empty where nobody says."""
    why: str

    def in_words(self) -> str:
        """Say it in one line."""
        by = f" by {self.by}" if self.by else ""
        return f"preempted{by} at {self.at:%Y-%m-%d %H:%M:%S} UTC: {self.why}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Gang:
    """Jobs that start together or not at all."""

    uid: str
    namespace: str
    name: str
    queue: str
    shape: Shape
    priority: int = 0
    asked_priority: int | None = None
    """What it asked for, where its queue lets it count less."""
    entitled: bool = True
    """Whether its namespace may use its queue."""
    since: datetime
    """When it was submitted, or last lost its place."""
    limit: timedelta | None = None
    """It is ended after so long, if anybody says."""
    gates: tuple[str, ...] = ()
    """What else holds it, in words; it is not considered before they are gone."""
    nominated: bool = False
    """Gangs were asked to stop for it, or node groups for nodes: it is considered before all others."""
    request: NodeRequest | None = None
    """What node groups were asked for it since it waits."""
    made_way_for: tuple[str, ...] = ()
    """Uids of gangs that it was stopped for, and of those that these were stopped for: it preempts none of
    them back, unless it is entitled to the quota."""
    preempted: PreemptionRecord | None = None
    """Where its last run ended so."""

    def stopped_for(self, other: Gang) -> Gang:
        """Return it as it waits once it has made way for another."""
        memory = dict.fromkeys((*self.made_way_for, *other.made_way_for, other.uid))
        memory.pop(self.uid, None)
        return replace(self, nominated=False, made_way_for=tuple(memory)[-MOST_REMEMBERED:])

    @property
    def turn(self) -> tuple[bool, datetime, int]:
        """What comes before priority and age: others that were stopped for it, then nodes that were asked for it.

        Who asked first comes first, as when the nodes were promised: another order would promise others.
        """
        request = self.request
        if not self.nominated or request is None or request.given_up:
            return not self.nominated, _FIRST, 0
        return False, request.at, request.number

    @property
    def lease(self) -> str:
        """What nodes are marked with that are leased to it: the value of a label, and its alone."""
        own = sha256(self.uid.encode()).hexdigest()[:16]
        return f"{self.namespace}.{self.name}"[:46] + f".{own}"

    @override
    def __str__(self) -> str:
        return f"{self.namespace}/{self.name}"


@dataclass(frozen=True, slots=True, kw_only=True)
class RunningGang:
    """A gang that was admitted."""

    gang: Gang
    admitted: datetime
    usage: Mapping[FlavorResource, int]
    """What it counts for in its queue."""
    on_nodes: Mapping[str, Resources]
    """What its pods request, by node; also of nodes that it will be given."""
    stopping: bool = False
    """It was asked to stop, and some of its pods are still there."""
    stays: bool = False
    """It cannot be suspended: it makes way for nobody."""

    @property
    def ends(self) -> datetime | None:
        """When it ends at the latest; None where nobody says."""
        return None if self.gang.limit is None else self.admitted + self.gang.limit


def amounts_of(requests: Resources, pods: int) -> dict[str, int]:
    """Return what so many pods request, by the names of Kubernetes; what is zero is left out.

    CPU in millicores, memory in bytes.
    """
    each = {"cpu": requests.cpu, "memory": requests.memory, "pods": requests.pods}
    each |= dict(requests.extended)
    return {name: amount * pods for name, amount in each.items() if amount}


class _Scheduled(Protocol):
    @property
    def scheduling(self) -> Scheduling: ...


def largest_first[R: _Scheduled](roles: Iterable[R]) -> Sequence[R]:
    """Return roles of a gang by what one pod requests, the largest first; equal ones stay in their order.

    Large pods find no place any more where small ones were spread before them. A pod is as large as its largest part
    of what any pod of the gang requests; of equal ones the sum of these parts decides.
    """
    roles = [*roles]
    requested = [amounts_of(role.scheduling.requests, 1) for role in roles]
    most = {
        name: max(r.get(name, 0) for r in requested) for name in {n for r in requested for n in r}
    }

    def size(amounts: Mapping[str, int]) -> tuple[float, float]:
        parts = [amount / most[name] for name, amount in amounts.items() if name != "pods"]
        return max(parts, default=0.0), sum(sorted(parts))

    order = sorted(range(len(roles)), key=lambda n: size(requested[n]), reverse=True)
    return [roles[n] for n in order]


def lost_at_an_interruption(
    checkpoint: timedelta | None, limit: timedelta | None
) -> timedelta | None:
    """Return what an interruption loses on average: half of what is between two checkpoints, or of the whole run.

    None: nobody says it.
    """
    said = [each for each in (checkpoint, limit) if each is not None]
    return min(said) / 2 if said else None
