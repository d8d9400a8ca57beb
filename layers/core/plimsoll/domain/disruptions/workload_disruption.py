"""One workload with pods that must go: all the facts that decide how they are replaced."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from functools import cached_property
from math import ceil
from typing import Final

from plimsoll.domain.disruptions.stop_times import (
    ASSUMED_SECONDS,
    LEAST_SECONDS,
    StopTime,
    evicts_from,
    least_seconds,
)
from plimsoll.domain.interruptions import NEAR, is_near
from plimsoll.domain.kubernetes import (
    DO_NOT_DISRUPT,
    Budget,
    Pod,
    Ref,
    ReplicaSet,
    Workload,
)
from plimsoll.domain.observation import WorkloadTimes

PATIENCE: Final = timedelta(minutes=5)
"""How long a released pod may wait for its replacement, or for its budget, where no deadline is near:
then its release is undone."""
START: Final = timedelta(seconds=30)
"""What a replacement that has a node is reckoned to take until it serves, where nobody saw it."""


@dataclass(frozen=True, kw_only=True)
class EvictablePod:
    """A pod on an interrupted node. Not slotted: the deadline that a plan asks for again and again is kept."""

    pod: Pod
    replica_set: ReplicaSet | None = None
    """The one that made it, where a Deployment or a Rollout controls that."""
    interruption: str
    """The identity of the interruption of its node."""
    cordoned: datetime | None = None
    """When its node was cordoned for it."""
    deadline: datetime | None
    """When the node must be empty; None while nobody says (a rebalance recommendation)."""
    told: datetime | None = None
    """When a notice told of the deadline."""
    stop: StopTime
    """How long it needs to stop."""
    overrules: bool = True
    """Whether its eviction deadline overrules budgets: not where the deadline is only guessed, and not for a Job's
    pod, since only an eviction says that a disruption ended it."""
    obeys: bool = False
    """Whether its owner lets nobody delete it past its budget."""
    guarded: bool = False
    """Whether only budgets of ours cover it."""
    released_only: bool = False
    """Whether it stays where it is if it must not be released."""
    notified: bool = True
    """Whether a notice of AWS concerns its node."""
    of_node_pool: bool = False
    """Whether Karpenter launched its node: then Karpenter evicts what is on it once it hears of the interruption."""
    clamps: bool = True
    """Whether its grace period is cut to the time left: only by a deadline at which the instance goes."""
    returned: bool = False
    """Whether it came to the node after its cordon, and might come again: it leaves once, at its eviction deadline."""
    kept_up_until: datetime | None = None
    """The deadline to which its grace period is cut once the heartbeats of the same plan are accepted; None: to none."""

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
        known = (
            self.evicts_from if self.stop.known else self._before_deadline(least_seconds(self.pod))
        )
        if known is not None and (self.told is None or self.told <= known):
            return known
        return self._before_deadline(min(self.pod.grace_seconds, ASSUMED_SECONDS))

    @cached_property
    def eviction_deadline(self) -> datetime | None:
        """From when it is evicted although nothing serves in its place.

        Of a pod beside which nothing serves there is nothing to wait for: it has all the time that it may need.
        """
        return self.evicts_from if self.pod.alone or self.stop.known else self.overrules_from

    @property
    def waits_for_deadline(self) -> bool:
        """Whether it leaves at its eviction deadline and never before.

        It may end or write a checkpoint by then, or nobody knows where it fits, or it would only come again.
        """
        return self.returned or not self.pod.restarts or self.pod.unread is not None

    def may_need_more(self, now: datetime) -> bool:
        """Whether waiting any longer may cut its time to stop short."""
        return self.evicts_from is not None and self.evicts_from <= now

    def late(self, now: datetime) -> bool:
        """Whether its eviction deadline has come."""
        return self.eviction_deadline is not None and self.eviction_deadline <= now

    def overrules_at(self, now: datetime) -> bool:
        """Whether its budget is overruled now."""
        due = self.overrules_from is not None and self.overrules_from <= now
        return due and self.overrules and not self.obeys

    def do_not_disrupt(self, now: datetime) -> str | None:
        """Return for how long Karpenter is to leave it to us, as its age at its eviction deadline; None: it need not.

        Only a near deadline is worth it: until then its node, and a NodePool's limits, wait for the pod.
        """
        end = self.eviction_deadline
        near = self.of_node_pool and self.clamps and is_near(self.deadline, now)
        if not near or end is None or end <= now or self.pod.started is None:
            return None
        if DO_NOT_DISRUPT in self.pod.annotations:
            return None
        return f"{ceil((end - self.pod.started).total_seconds())}s"

    def clamped_grace(self, now: datetime, *, kept_up: bool = False) -> int | None:
        """Return a shorter grace period where its own does not fit, never below a second.

        A second that has begun counts whole, since the margin before the instance goes is longer.
        Zero would delete the pod while it runs: two of a StatefulSet's name could then be alive.

        Args:
            now: the time.
            kept_up: whether the heartbeats of the same plan count as accepted.
        """
        end = self.kept_up_until if kept_up else self.deadline if self.clamps else None
        if end is None:
            return None
        left = (end - now).total_seconds()
        return max(1, ceil(left)) if self.pod.grace_seconds > left + 1 else None

    def _before_deadline(self, seconds: int) -> datetime | None:
        if self.deadline is None:
            return None
        return self.deadline - timedelta(seconds=max(LEAST_SECONDS, seconds))


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
    left_to_drain: frozenset[str] = frozenset()
    """Uids of released pods that a `plimsoll drain` goes on with: see `plimsoll.domain.disruptions.manual_drain`."""
    provisioned: bool = False
    """Whether Karpenter takes the nodes of its pods away, and makes others for what is Pending."""
    current: ReplicaSet | None = None
    """The newest ReplicaSet of a Deployment or Rollout."""
    times: WorkloadTimes = field(default_factory=WorkloadTimes)
    """How long its pods were seen to take to stop and to start."""
    now: datetime

    @cached_property
    def serving(self) -> int:
        """Ready pods anywhere, those on interrupted nodes too: they still serve."""
        return sum(self.serves(p) for p in self.pods)

    @cached_property
    def staying(self) -> tuple[Pod, ...]:
        """Pods that stay: bound elsewhere or still without a node."""
        return tuple(
            p
            for p in self.pods
            if p.deleting is None and p.uid not in self.on_interrupted_nodes | self.dead
        )

    @cached_property
    def leaving(self) -> tuple[Pod, ...]:
        """Pods that were asked to stop and still need a place elsewhere."""
        return tuple(
            p for p in self.pods if p.deleting is not None and p.uid in self.on_interrupted_nodes
        )

    @cached_property
    def deadline_near(self) -> bool:
        """Whether a deadline presses. Without one, nothing is worth a pod that stays Pending."""
        return any(d.deadline and d.deadline - self.now < NEAR for d in self.evictable)

    @property
    def start(self) -> timedelta:
        """What a replacement that has a node is reckoned to take until it serves.

        Never less than where nobody saw it: the pod in whose place it comes may have to stop first.
        """
        seen = self.times.start
        return START if seen is None else max(START, timedelta(seconds=seen.p95_seconds))

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

    def without(self, evicted: frozenset[str]) -> WorkloadDisruption:
        """Return what is left once these pods are asked to stop: they serve no longer.

        Args:
            evicted: their uids, and those of other workloads.
        """
        return replace(
            self,
            evictable=tuple(d for d in self.evictable if d.pod.uid not in evicted),
            pods=tuple(replace(p, deleting=self.now) if p.uid in evicted else p for p in self.pods),
        )

    @cached_property
    def rolling(self) -> bool:
        """Whether its rollout takes as many pods as may be missing, at any moment."""
        return self.workload is not None and self.workload.rolling_out and not self.workload.paused

    def serves(self, pod: Pod) -> bool:
        """Whether a pod of it is Ready, not asked to stop, and alive."""
        return pod.serving and pod.uid not in self.dead

    def steady(self, pod: Pod) -> bool:
        """Whether a pod of it serves, and has for `minReadySeconds` where there is time to wait for that."""
        return self._is_available(pod) if self._waits else self.serves(pod)

    @cached_property
    def _waits(self) -> bool:
        """Whether the next pod can wait for `minReadySeconds`: others then still leave in turn before their deadlines."""
        ends = [d.eviction_deadline for d in self.evictable if d.eviction_deadline]
        since = (p.ready_since for p in self.pods if p.ready_since and self.serves(p))
        then = max(since, default=self.now) + self._min_ready
        return len(ends) < 2 or then + (len(ends) - 1) * self.start <= max(ends)  # noqa: PLR2004

    @cached_property
    def _min_ready(self) -> timedelta:
        return timedelta(seconds=0 if self.workload is None else self.workload.min_ready_seconds)

    def _is_available(self, pod: Pod) -> bool:
        since, least = pod.ready_since, self._min_ready
        return self.serves(pod) and (not least or (since is not None and since + least <= self.now))

    @cached_property
    def released(self) -> tuple[Pod, ...]:
        """Pods that were released and not evicted yet, wherever they stand."""
        return tuple(
            p for p in self.pods if p.released and p.deleting is None and p.uid not in self.dead
        )

    @cached_property
    def superfluous(self) -> int:
        """How many released pods are no longer needed: others are available in their place."""
        return max(0, len(self.released) - max(0, self.replicas - self.available))

    @cached_property
    def leaving_order(self) -> Sequence[Pod]:
        """Released pods on interrupted nodes, in the order in which they leave; those that do not serve are first."""
        return sorted(
            (p for p in self.released if p.uid in self.on_interrupted_nodes),
            key=lambda p: (p.serving, self.turn.get(p.uid, len(self.pods)), p.name),
        )

    @cached_property
    def available(self) -> int:
        """How many pods that count for its ReplicaSets have been Ready for `minReadySeconds`.

        While a deadline is near, a replacement that came to an interrupted node replaces nothing. Without one it may
        serve there for hours, and no released pod is to stand beside it for so long.
        """
        gone_soon = self.returned if self.deadline_near else frozenset()
        return sum(
            self._is_available(p) and not p.released and p.uid not in gone_soon for p in self.pods
        )

    @cached_property
    def turn(self) -> Mapping[str, int]:
        """By uid: the place of an evictable pod in the order of urgency."""
        return {one.pod.uid: turn for turn, one in enumerate(self.evictable)}
