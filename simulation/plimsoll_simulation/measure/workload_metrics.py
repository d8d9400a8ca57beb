"""The metrics of one workload in a drill, and of one pod.

A pod counts as Ready while its Ready condition is true, it is not being deleted, and its instance exists. The API
server believes in a dead node for another 50 s, which would flatter those who do nothing.

Time is added up lazily: whatever changes a state first accounts for the time since the last change.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

from plimsoll.domain.kubernetes import Selector, quorum, ready_floor, runs_twice
from plimsoll_simulation.scenario.kinds import COUNTED, LISTED

type WorkloadId = tuple[str, str, str, str]
"""Cluster, namespace, kind and name."""

_ZERO = timedelta(0)


@dataclass(slots=True, kw_only=True)
class PodMetrics:
    """What is known of one pod."""

    uid: str
    metrics: WorkloadMetrics | None
    ignored: bool
    """A DaemonSet's or mirror pod: it counts nowhere."""
    own_grace: timedelta
    stop: timedelta
    """How long it takes from SIGTERM to its exit."""
    node: str | None = None
    bound: datetime | None = None
    """When it got its node."""
    phase: str = "Pending"
    ready: bool = False
    leaving_since: datetime | None = None
    granted: timedelta | None = None
    """The grace period that it was given, once its deletion began."""
    stops: datetime | None = None
    """When its containers end at the latest, once its deletion began."""
    ran: bool = False
    """Whether its containers ran when its deletion began."""
    evicted: bool = False
    replaced: bool = False
    killed: bool = False
    dead: bool = False
    """Its instance is gone, and its Ready condition has not been false since: nobody has written that yet."""

    @property
    def running(self) -> bool:
        """Whether its containers run: on a node, started and not finished."""
        return self.phase == "Running" and self.node is not None

    def stopped_by(self, now: datetime) -> bool:
        """Whether its containers have ended by now, though the API may not say so yet.

        A watch tells it a little later, and an API server that is away not at all.
        """
        return self.stops is not None and now >= self.stops

    @property
    def occupies(self) -> bool:
        """Whether it is on a node and not finished."""
        return self.node is not None and self.phase not in {"Succeeded", "Failed"}

    @property
    def pending(self) -> bool:
        """Whether it waits for a node or for its containers."""
        return self.phase == "Pending" and self.leaving_since is None

    def update(self, now: datetime, pod: Mapping[str, Any]) -> None:
        """Take in its newest state."""
        metadata, status = pod["metadata"], pod.get("status") or {}
        self.node = pod["spec"].get("nodeName") or None
        if self.node is not None and self.bound is None:
            self.bound = now
        self.phase = status.get("phase", "Pending")
        interrupted = "deletionTimestamp" in metadata
        if interrupted and "deletionGracePeriodSeconds" in metadata:
            granted = timedelta(seconds=metadata["deletionGracePeriodSeconds"])
            if self.granted is None or granted < self.granted:
                self.granted = granted
                ends = now + min(granted, self.stop) if self.stops is None else now + granted
                self.stops = min(ends, self.stops or ends)
        shown = any(
            condition.get("type") == "Ready" and condition.get("status") == "True"
            for condition in status.get("conditions") or ()
        )
        self.dead = self.dead and shown
        self.ready = shown and not interrupted and not self.dead

    def die(self) -> None:
        """Take in that its instance is gone, whatever the API server says of it."""
        self.dead, self.ready = True, False


@dataclass(slots=True, kw_only=True)
class WorkloadMetrics:
    """What is known of one workload."""

    id: WorkloadId
    selector: Selector
    labels: Mapping[str, str]
    """Of its pods."""
    declared: int
    """As its manifest or the timeline last said."""
    replicas: int
    """The same, within what its autoscaler holds."""
    strategy: str
    max_unavailable: int | str
    max_surge: int | str
    autoscaled: bool = False
    """Whether a HorizontalPodAutoscaler scales it."""
    scaled: int | None = None
    """The count that its object says, once that was seen."""
    floor: int = 0
    """As last declared."""
    since: datetime | None = None
    """Up to when time is accounted for; None before time 0."""
    bound: int = 0
    """The count that is measured against: a raised one binds once it was reached."""
    bound_floor: int = 0
    ready: set[str] = field(default_factory=set)
    on_demand: set[str] = field(default_factory=set)
    """Those of the Ready pods that stand on on-demand nodes."""
    min_ready: int | None = None
    min_ready_on_demand: int | None = None
    below_floor: timedelta = _ZERO
    below_quorum: timedelta = _ZERO
    below_replicas: timedelta = _ZERO
    lost: timedelta = _ZERO
    at_zero: timedelta = _ZERO
    killed: int = 0
    unforeseen_killed: int = 0
    """Of those killed, how many went with an instance whose end was not told in time for them to stop."""
    cut_short: int = 0
    unforeseen_cut: int = 0
    """The same, of those cut short."""
    surprised: int = 0
    """Pods that came to stand, since time 0, on an instance that was yet to get its first notice."""
    evicted: int = 0
    replaced_first: int = 0

    @property
    def counted(self) -> bool:
        """Whether its ready pods are measured."""
        return self.id[2] not in LISTED

    @property
    def overruled(self) -> bool:
        """Whether its autoscaler holds it to fewer than its owner declared."""
        return self.autoscaled and self.scaled is not None and self.scaled < self.replicas

    @property
    def unforeseen(self) -> int:
        """How many of its pods were killed or cut short since nobody was told in time."""
        return self.unforeseen_killed + self.unforeseen_cut

    @property
    def ready_on_spot(self) -> int:
        """How many of its Ready pods stand on spot nodes now."""
        return len(self.ready) - len(self.on_demand)

    @property
    def quorum(self) -> int:
        """How many of them have to be Ready for a store to take writes."""
        return quorum(self.id[2], self.bound)

    @property
    def twice(self) -> bool:
        """Whether it can run twice: it has a ready floor at its declared count, or none to keep."""
        return runs_twice(self.id[2], self.replicas, self.strategy)

    def set_floor(self, now: datetime, *, kept: int, one_budget: bool) -> None:
        """Work out the ready floor anew.

        Args:
            now: until when the former one counts.
            kept: how many replicas the budgets keep.
            one_budget: whether exactly one budget covers them.
        """
        self.advance(now)
        self.floor = 0
        if self.counted:
            self.floor = ready_floor(
                self.id[2] if self.id[2] in COUNTED else "StatefulSet",  # may miss one
                self.replicas,
                self.strategy,
                self.max_unavailable,
                kept,
                max_surge=self.max_surge,
                one_budget=one_budget and self.id[2] in COUNTED,
            )
        self._bind()

    def count(self, now: datetime, replicas: int) -> None:
        """Take in another count to be held to; `set_floor` has to follow."""
        self.advance(now)
        self.replicas = replicas

    def redeclare(self, now: datetime, newer: WorkloadMetrics) -> None:
        """Take in another declaration, but for the count; `count` and `set_floor` have to follow."""
        self.advance(now)
        self.selector, self.labels = newer.selector, newer.labels
        self.strategy = newer.strategy
        self.max_unavailable, self.max_surge = newer.max_unavailable, newer.max_surge

    def begin(self, now: datetime) -> None:
        """Start to measure: what is declared binds."""
        self.since = now
        self.bound, self.bound_floor = self.replicas, self.floor

    def set_ready(self, now: datetime, uid: str, *, ready: bool, on_demand: bool = False) -> None:
        """Take in whether one of its pods is Ready, and whether that stands on an on-demand node."""
        if ready == (uid in self.ready):
            return
        self.advance(now)
        if ready:
            self.ready.add(uid)
            self.on_demand |= {uid} if on_demand else set()
        else:
            self.ready.discard(uid)
            self.on_demand.discard(uid)
        self._bind()

    def _bind(self) -> None:
        if self.since is not None and (
            self.replicas <= self.bound or len(self.ready) >= self.replicas
        ):
            self.bound, self.bound_floor = self.replicas, self.floor

    def advance(self, now: datetime) -> None:
        """Account for the time up to now in the state that it had."""
        if self.since is None or not self.counted:
            return
        elapsed = now - self.since
        if elapsed <= _ZERO:
            return
        self.since = now
        self.look()
        ready = len(self.ready)
        if ready < self.bound:
            self.below_replicas += elapsed
            self.lost += elapsed * (self.bound - ready)
            if ready == 0:
                self.at_zero += elapsed
        if ready < self.bound_floor:
            self.below_floor += elapsed
        if ready < self.quorum:
            self.below_quorum += elapsed

    def look(self) -> None:
        """Note the ready count as one that was seen to last."""
        if self.since is not None and self.counted and self.bound > 0:
            ready, on_demand = len(self.ready), len(self.on_demand)
            self.min_ready = min(ready, ready if self.min_ready is None else self.min_ready)
            lowest = self.min_ready_on_demand
            self.min_ready_on_demand = min(on_demand, on_demand if lowest is None else lowest)

    def kill(self, pod: PodMetrics) -> None:
        """Take in that a pod went down with its instance: it did not leave by any other way."""
        self.killed += 1
        self.evicted -= pod.evicted
        self.replaced_first -= pod.replaced

    def replaced_without(self, uid: str) -> bool:
        """Whether it has all its replicas Ready without this pod."""
        return self.counted and len(self.ready - {uid}) >= max(1, self.bound)

    def lacking(self) -> str | None:
        """Return in words what it lacks to be fully Ready, if it lacks something."""
        if len(self.ready) >= self.replicas:
            return None
        cluster, namespace, kind, name = self.id
        return (
            f"{kind} {namespace}/{name} of {cluster} has {len(self.ready)} of "
            f"{self.replicas} replicas Ready"
        )


def left_by_eviction(pod: Mapping[str, Any]) -> bool:
    """Whether a pod leaves through the eviction API, which leaves a condition on it.

    Source: https://kubernetes.io/docs/concepts/workloads/pods/disruptions/#pod-disruption-conditions
    """
    return any(
        condition.get("type") == "DisruptionTarget"
        and condition.get("status") == "True"
        and condition.get("reason") == "EvictionByEvictionAPI"
        for condition in pod.get("status", {}).get("conditions", ())
    )
