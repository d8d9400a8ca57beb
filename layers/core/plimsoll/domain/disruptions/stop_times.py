"""How long a pod needs to stop: stated by its owner, observed, or assumed.

The grace period is a maximum: charts set ten minutes for a server that stops in two seconds, and operators set a week for a
database that stops in ten. So, in this order:
  1. what the owner states in the annotation `plimsoll.dev/stop-seconds`;
  2. what its workload was seen to take, once that is known of three pods. A pod with a claim takes twice that, and at
     least 30 s: a restart in calm times flushes less than one under load;
  3. an assumption: the whole grace period of a pod of a Job and of a bare pod, of a pod that mounts a claim, and of one with a
     preStop hook that sleeps; else the grace period, but at most 30 s, which is Kubernetes' own default.
An assumption never overrules a PodDisruptionBudget earlier than 30 s before the deadline. What a preStop hook sleeps is no
assumption: no container is asked to stop before.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum, unique
from math import ceil
from typing import Final, override

from plimsoll.domain.kubernetes import Pod, Ref
from plimsoll.domain.observation import Observation, ObservedTime, WorkloadTimes

ASSUMED_SECONDS: Final = 30
"""The default `terminationGracePeriodSeconds` of Kubernetes."""
LEAST_SECONDS: Final = 10
"""No pod is left until later than this before its deadline, however fast it stops: a plan may come late."""
PODS_THAT_TELL: Final = 3
"""Fewer distinct pods never shorten an assumption."""
LEAST_SECONDS_WITH_CLAIM: Final = 30
LOADED_FACTOR: Final = 2
"""How much longer a pod with a claim is reckoned to take than it was seen to."""
NOTHING_SEEN: Final = WorkloadTimes()


@unique
class Basis(StrEnum):
    """From where a stop time is known."""

    STATED = "stated"
    OBSERVED = "observed"
    ASSUMED = "assumed"


@dataclass(frozen=True, slots=True, kw_only=True)
class StopTime:
    """How long a pod needs from the request to stop until its end: at most its grace period."""

    seconds: int
    basis: Basis
    observed: ObservedTime | None = None
    """What was seen, where that decides."""

    @property
    def known(self) -> bool:
        """Whether it is more than an assumption."""
        return self.basis is not Basis.ASSUMED

    @override
    def __str__(self) -> str:
        if self.observed is None:
            return f"{self.seconds} s, {self.basis}"
        seen = self.observed
        return f"{self.seconds} s, {self.basis} ({seen.pods} pods, p95 {seen.p95_seconds:.0f} s)"


def stop_time(pod: Pod, observed: ObservedTime | None = None) -> StopTime:
    """Return how long a pod needs to stop.

    Args:
        pod: the pod.
        observed: what the pods of its workload were seen to take.
    """
    if pod.stated_stop_seconds is not None:
        return StopTime(seconds=pod.stated_stop_seconds, basis=Basis.STATED)
    grace = pod.grace_seconds
    seen = 0.0 if observed is None else observed.p95_seconds
    if observed is not None and observed.pods >= PODS_THAT_TELL:
        if mounts_claim(pod):
            seen = max(LEAST_SECONDS_WITH_CLAIM, LOADED_FACTOR * seen)
        seen = max(seen, pod.hook_seconds or 0)
        return StopTime(seconds=min(grace, ceil(seen)), basis=Basis.OBSERVED, observed=observed)
    # Few pods were seen: they can only lengthen what is assumed.
    assumed = grace if _may_need_all(pod) else min(grace, ASSUMED_SECONDS)
    return StopTime(seconds=max(assumed, min(grace, ceil(seen))), basis=Basis.ASSUMED)


def evicts_from(pod: Pod, deadline: datetime, stop: StopTime | None = None) -> datetime:
    """Return the last moment at which an eviction leaves a pod all the time that it may need to stop.

    Args:
        pod: the pod.
        deadline: when its node must be empty.
        stop: how long it needs; by default as it stands on the pod itself.
    """
    seconds = (stop or stop_time(pod)).seconds
    return deadline - timedelta(seconds=max(LEAST_SECONDS, seconds))


def least_seconds(pod: Pod) -> int:
    """Return what a pod needs at least, as its owner states or as Kubernetes gives it by default.

    A preStop hook that sleeps is part of it, and the least time to stop after it.
    """
    if pod.stated_stop_seconds is not None:
        return pod.stated_stop_seconds
    hooked = LEAST_SECONDS + (pod.hook_seconds or 0)
    return min(pod.grace_seconds, max(ASSUMED_SECONDS, hooked))


def mounts_claim(pod: Pod) -> bool:
    """Whether a pod mounts a PersistentVolumeClaim, or may: its spec could not be read."""
    return bool(pod.scheduling.claims) or pod.unread is not None


def _may_need_all(pod: Pod) -> bool:
    return pod.alone or pod.hook_seconds is not None or mounts_claim(pod)


def stop_of(seen: Observation, pod: Pod) -> StopTime:
    """Return how long a pod needs to stop, by what is remembered of its workload."""
    return stop_time(pod, seen.times.get(seen.workload_of(pod), NOTHING_SEEN).stop)


def known_stops(seen: Observation, pods: Iterable[Pod]) -> Mapping[Ref, StopTime]:
    """Return the longest stop time of the pods of each workload."""
    found: dict[Ref, StopTime] = {}
    for pod in pods:
        workload, stop = seen.workload_of(pod), stop_of(seen, pod)
        known = found.get(workload)
        if known is None or known.seconds < stop.seconds:
            found[workload] = stop
    return found
