"""One workload with pods that must go: all the facts that decide how they are replaced."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from functools import cached_property
from typing import Final

from plimsoll.domain.pods import Pod, Ref
from plimsoll.domain.workloads import Budget, ReplicaSet, Workload

NEAR: Final = timedelta(minutes=10)
"""A deadline nearer than this presses. Maintenance in two weeks does not."""


@dataclass(frozen=True, slots=True, kw_only=True)
class EvictablePod:
    """A pod on an interrupted node."""

    pod: Pod
    interruption: str
    """The identity of the interruption of its node."""
    deadline: datetime | None
    """When the node must be empty; None while nobody says (a rebalance recommendation)."""

    @property
    def latest_start(self) -> datetime | None:
        """Its last call: the last moment at which an eviction leaves it the time it needs to stop."""
        if self.deadline is None:
            return None
        return self.deadline - timedelta(seconds=self.pod.stop_seconds)

    def late(self, now: datetime) -> bool:
        """Whether waiting any longer would cut its grace period short."""
        return self.latest_start is not None and self.latest_start <= now

    def clamped_grace(self, now: datetime) -> int | None:
        """Return a shorter grace period where its own does not fit, never below a second.

        Zero would delete the pod while it runs: two of a StatefulSet's name could then be alive.
        """
        if self.deadline is None:
            return None
        left = (self.deadline - now).total_seconds()
        return max(1, int(left)) if self.pod.grace_seconds > left + 1 else None


@dataclass(frozen=True, kw_only=True)
class WorkloadDisruption:
    """A workload, its pods, and which of them must go. Not slotted: derived figures are kept."""

    ref: Ref
    workload: Workload | None
    """None for jobs, bare pods, and controllers that we do not know."""
    pods: tuple[Pod, ...]
    evictable: tuple[EvictablePod, ...]
    """Those not yet asked to stop."""
    on_interrupted_nodes: frozenset[str]
    """Uids of all its pods on interrupted nodes, stopping ones too."""
    dead: frozenset[str] = frozenset()
    """Uids of pods whose instance is gone: the API server may count them, Ready even."""
    replicas: int
    """What the owner declared."""
    floor: int
    """The ready floor."""
    budgets: tuple[Budget, ...] = ()
    """The PodDisruptionBudgets that cover its pods."""
    not_releasable: Mapping[str, str] = field(default_factory=dict)
    """Uid of an evictable pod -> why it must not be released."""
    left_to_drain: frozenset[str] = frozenset()
    """Uids of released pods that a `plimsoll drain` goes on with: see `plimsoll.domain.manual_drain`."""
    current: ReplicaSet | None = None
    """The newest ReplicaSet of a Deployment."""
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
    def owed(self) -> tuple[Pod, ...]:
        """Those of the leaving whose successors do not exist yet, not even as Pending pods."""
        if self.workload is None:
            return self.leaving
        made = sum(not p.released for p in self.staying) + sum(
            not d.pod.released for d in self.evictable
        )
        return self.leaving[: max(0, self.workload.replicas - made)]

    @cached_property
    def deadline_near(self) -> bool:
        """Whether a deadline presses. Without one, nothing is worth a pod that stays Pending."""
        return any(d.deadline and d.deadline - self.now < NEAR for d in self.evictable)

    @cached_property
    def staying_ready(self) -> int:
        """How many of the staying are Ready."""
        return sum(p.ready for p in self.staying)

    @cached_property
    def missing(self) -> int:
        """How many replacements do not exist yet, not even as Pending pods."""
        return max(0, self.replicas - len(self.staying))

    @cached_property
    def unsettled(self) -> tuple[Pod, ...]:
        """Pods that do not serve: starting, stopping or sick."""
        return tuple(p for p in self.pods if not self.serves(p))

    @cached_property
    def allowed(self) -> int | None:
        """How many Ready pods its budgets let go now; None where there is no budget.

        The eviction API refuses every pod that two budgets cover, whatever they allow. Source:
        https://kubernetes.io/docs/concepts/scheduling-eviction/api-eviction/
        """
        if len(self.budgets) > 1:
            return 0
        return self.budgets[0].disruptions_allowed if self.budgets else None

    @cached_property
    def blocked(self) -> str:
        """Say why its budgets allow nothing now."""
        names = ", ".join(budget.ref.name for budget in self.budgets)
        if len(self.budgets) > 1:
            return f"the eviction API refuses pods that several budgets cover: {names}"
        return f"its PodDisruptionBudget {names} allows no disruption now"

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
    def available(self) -> int:
        """How many pods that count for its ReplicaSets have been Ready for `minReadySeconds`."""
        least = timedelta(seconds=0 if self.workload is None else self.workload.min_ready_seconds)
        return sum(
            self.serves(p)
            and not p.released
            and (not least or (p.ready_since is not None and p.ready_since + least <= self.now))
            for p in self.pods
        )

    def deadline_of(self, pod: Pod) -> datetime:
        """When the node of a pod must be empty; the far future where nobody says."""
        found = next((d.deadline for d in self.evictable if d.pod.uid == pod.uid), None)
        return found or datetime.max.replace(tzinfo=UTC)
