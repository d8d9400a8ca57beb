"""One workload with pods that must go: the facts that more than one rule of a drain asks for."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from enum import Enum, auto, unique
from functools import cached_property
from typing import Final

from plimsoll.domain.disruptions.stop_times import (
    ASSUMED_SECONDS,
    LEAST_SECONDS,
    StopTime,
    evicts_from,
    least_seconds,
)
from plimsoll.domain.kubernetes import Budget, Pod, Ref, ReplicaSet, Workload

PATIENCE: Final = timedelta(minutes=5)
"""How long a released pod may wait for its replacement, or for its budget, where no deadline is near:
then its release is undone."""


@unique
class Cause(Enum):
    """Why pods leave a node."""

    INTERRUPTION = auto()
    """A notice of AWS concerns the node, or somebody drains it by hand."""
    OTHER_DRAIN = auto()
    """Another program empties it: only guarded pods are moved."""
    ZONAL_SHIFT = auto()
    """Traffic left its zone: a pod that must not be released stays where it is."""


@unique
class BudgetRule(Enum):
    """What becomes of the budget of a pod at its eviction deadline."""

    OVERRULED = auto()
    """The pod is deleted where its budget refuses the eviction."""
    KEPT = auto()
    """It is evicted at most: the deadline is only guessed, or it is a Job's pod, of which only an eviction says that a
    disruption ended it."""
    KEPT_BY_OWNER = auto()
    """Its owner lets nobody delete it past its budget."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Departure:
    """Why a node is left, and by when: the same for all of its pods."""

    cause: Cause = Cause.INTERRUPTION
    interruption: str
    """The identity of the interruption."""
    cordoned: datetime | None = None
    """When the node was cordoned for it."""
    deadline: datetime | None = None
    """When the node must be empty; None while nobody says (a rebalance recommendation)."""
    noticed: datetime | None = None
    """When a notice named the deadline."""
    exact: bool = True
    """Whether the instance goes at the deadline: then grace periods are cut to the time left."""
    kept_up_until: datetime | None = None
    """The deadline to which grace periods are cut once the heartbeats of the same plan are accepted; None: to none."""
    of_node_pool: bool = False
    """Whether Karpenter launched the node: then Karpenter evicts what is on it once it hears of the interruption."""


@dataclass(frozen=True, kw_only=True)
class EvictablePod:
    """A pod on a node that is left. Not slotted: the deadline that a plan asks for again and again is kept."""

    pod: Pod
    replica_set: ReplicaSet | None = None
    """The one that made it, where a Deployment or a Rollout controls that."""
    departure: Departure
    stop: StopTime
    """How long it needs to stop."""
    budget: BudgetRule = BudgetRule.OVERRULED
    returned: bool = False
    """Whether it came to the node after its cordon, and might come again: it leaves once, at its eviction deadline."""

    @property
    def deadline(self) -> datetime | None:
        """When its node must be empty; None while nobody says."""
        return self.departure.deadline

    @property
    def evicts_from(self) -> datetime | None:
        """The last moment at which an eviction leaves it all the time that it may need to stop.

        From then on it leaves by the Eviction API, as its budget and the ready floor of its workload allow.
        """
        return None if self.deadline is None else evicts_from(self.pod, self.deadline, self.stop)

    @property
    def overrules_from(self) -> datetime | None:
        """From when its budget is overruled.

        An assumption that it needs long does not count for that, but what a preStop hook sleeps does. Nor does a
        known time that is longer than the notice: all members of a database would leave at the notice, and none
        would have its time.
        """
        noticed = self.departure.noticed
        known = self.evicts_from
        if not self.stop.known:
            known = _before(self.deadline, least_seconds(self.pod))
        if known is not None and (noticed is None or noticed <= known):
            return known
        return _before(self.deadline, min(self.pod.grace_seconds, ASSUMED_SECONDS))

    @cached_property
    def eviction_deadline(self) -> datetime | None:
        """From when it is evicted although nothing serves in its place.

        Of a pod beside which nothing serves there is nothing to wait for: it has all the time that it may need.
        """
        return self.evicts_from if self.pod.alone or self.stop.known else self.overrules_from

    def may_need_more(self, now: datetime) -> bool:
        """Whether waiting any longer may cut its time to stop short."""
        return self.evicts_from is not None and self.evicts_from <= now

    def late(self, now: datetime) -> bool:
        """Whether its eviction deadline has come."""
        return self.eviction_deadline is not None and self.eviction_deadline <= now

    def overrules_at(self, now: datetime) -> bool:
        """Whether its budget is overruled now."""
        due = self.overrules_from is not None and self.overrules_from <= now
        return due and self.budget is BudgetRule.OVERRULED


def _before(deadline: datetime | None, seconds: int) -> datetime | None:
    return None if deadline is None else deadline - timedelta(seconds=max(LEAST_SECONDS, seconds))


@dataclass(frozen=True, kw_only=True)
class WorkloadDisruption:
    """A workload, its pods, and which of them must go. Not slotted: derived figures are kept."""

    ref: Ref
    workload: Workload | None
    """None for jobs, bare pods, and controllers that we do not know."""
    pods: tuple[Pod, ...]
    evictable: tuple[EvictablePod, ...]
    """Those not yet asked to stop, in the order of urgency of their nodes."""
    on_interrupted_nodes: frozenset[str]
    """Uids of all its pods on interrupted nodes, stopping ones too, and of those that placement moves."""
    returned: frozenset[str] = frozenset()
    """Uids of those of them that came to their node after its cordon."""
    dead: frozenset[str] = frozenset()
    """Uids of pods whose instance is gone: the API server may count them, Ready even."""
    replicas: int
    """What the owner declared."""
    uncounted: bool = False
    """Nobody declares it, and pods may have left that are not made anew yet."""
    floor: int
    """The ready floor."""
    kept: int = 0
    """How many pods its budgets keep of it, while all others that these cover serve."""
    covering: Mapping[str, tuple[Budget, ...]] = field(default_factory=dict)
    """Uid of a pod -> the PodDisruptionBudgets that cover it; those that none covers are left out."""
    not_releasable: Mapping[str, str] = field(default_factory=dict)
    """Uid of an evictable pod -> why it must not be released."""
    undone: Mapping[str, str] = field(default_factory=dict)
    """Uid of a released pod -> why it must not stay so."""
    current: ReplicaSet | None = None
    """The newest ReplicaSet of a Deployment or Rollout."""
    start: timedelta
    """What a replacement that has a node is reckoned to take until it serves."""
    now: datetime

    @cached_property
    def serving(self) -> int:
        """Ready pods anywhere, those on interrupted nodes too: they still serve."""
        return sum(self.serves(p) for p in self.pods)

    @cached_property
    def staying(self) -> tuple[Pod, ...]:
        """Pods that stay: bound elsewhere or still without a node."""
        gone = self.on_interrupted_nodes | self.dead
        return tuple(p for p in self.pods if p.deleting is None and p.uid not in gone)

    @cached_property
    def leaving(self) -> tuple[Pod, ...]:
        """Pods that were asked to stop and still need a place elsewhere."""
        return tuple(
            p for p in self.pods if p.deleting is not None and p.uid in self.on_interrupted_nodes
        )

    @cached_property
    def staying_ready(self) -> int:
        """How many of the staying are Ready."""
        return sum(p.ready for p in self.staying)

    @cached_property
    def missing(self) -> int:
        """How many replacements do not exist yet, not even as Pending pods."""
        return max(0, self.replicas - len(self.staying))

    @cached_property
    def budgets(self) -> tuple[Budget, ...]:
        """The budgets that cover any of its pods."""
        return tuple({b.ref: b for covering in self.covering.values() for b in covering}.values())

    def serves(self, pod: Pod) -> bool:
        """Whether a pod of it is Ready, not asked to stop, and alive."""
        return pod.serving and pod.uid not in self.dead

    @cached_property
    def released(self) -> tuple[Pod, ...]:
        """Pods that were released and not evicted yet, wherever they stand."""
        return tuple(
            p for p in self.pods if p.released and p.deleting is None and p.uid not in self.dead
        )

    @cached_property
    def steady(self) -> frozenset[str]:
        """Uids of its pods that serve, and have for `minReadySeconds` where there is time to wait for that."""
        counts = is_available if _can_wait(self) else WorkloadDisruption.serves
        return frozenset(pod.uid for pod in self.pods if counts(self, pod))


def is_available(disruption: WorkloadDisruption, pod: Pod) -> bool:
    """Whether a pod of a workload serves, and has for `minReadySeconds`."""
    since, least = pod.ready_since, _min_ready(disruption)
    long_enough = not least or (since is not None and since + least <= disruption.now)
    return disruption.serves(pod) and long_enough


def _can_wait(disruption: WorkloadDisruption) -> bool:
    """Whether the next pod can wait for `minReadySeconds`: others then still leave in turn before their deadlines."""
    ends = [d.eviction_deadline for d in disruption.evictable if d.eviction_deadline]
    since = (p.ready_since for p in disruption.pods if p.ready_since and disruption.serves(p))
    then = max(since, default=disruption.now) + _min_ready(disruption)
    return len(ends) < 2 or then + (len(ends) - 1) * disruption.start <= max(ends)  # noqa: PLR2004


def _min_ready(disruption: WorkloadDisruption) -> timedelta:
    workload = disruption.workload
    return timedelta(seconds=0 if workload is None else workload.min_ready_seconds)
