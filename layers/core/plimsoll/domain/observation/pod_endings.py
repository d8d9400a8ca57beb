"""How pods end while a reconcile looks: consecutive observations of one cluster, about a second apart.

A list tells only which pods are stopping. The next observation tells which of them are gone, and so how long they took:
from `deletionTimestamp` less `deletionGracePeriodSeconds` until they were no longer listed. Pods are listed until their phase is
Succeeded or Failed, which the kubelet writes once their containers have ended.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from math import ceil
from typing import Final

from plimsoll.domain.kubernetes import (
    DEADLINE,
    Node,
    Pod,
    Ref,
    class_of,
    deadline_text,
    gang_of,
    queued_gang_of,
)
from plimsoll.domain.observation.observation import Observation
from plimsoll.domain.observation.observed_times import Sample, Samples, times_are_kept

CLOSE: Final = timedelta(seconds=5)
"""Two observations further apart do not tell when a pod was gone."""
UNNOTICED: Final = timedelta(seconds=50)
"""How long a Node says Ready after its instance is gone.
https://kubernetes.io/docs/reference/node/node-status/#node-heartbeats"""


@dataclass(frozen=True, slots=True)
class _Stopping:
    workload: Ref
    pod: Pod
    alive: datetime
    """When it was last seen while its node was up."""
    sure: bool
    """Whether the node surely was: its instance goes at a deadline that is still to come."""


@dataclass(frozen=True, slots=True)
class _Told:
    gang: Ref
    """The class of its gang."""
    node: str | None
    since: datetime
    deadline: datetime


@dataclass(slots=True)
class Endings:
    """The pods that one reconcile sees stop."""

    samples: dict[Ref, Samples] = field(default_factory=dict)
    """What they told."""
    _stopping: dict[str, _Stopping | None] = field(default_factory=dict)
    """By UID; None for a pod that tells nothing."""
    _told: dict[str, _Told] = field(default_factory=dict)
    """By UID: pods that were told a deadline, and run on."""
    _looked: datetime | None = None

    def note(
        self, seen: Observation, began: datetime, now: datetime, terminated: Collection[str] = ()
    ) -> None:
        """Take in an observation.

        Args:
            seen: the observation.
            began: when it was begun: what it shows was there then, or came later.
            now: when it was made: what it does not show is gone.
            terminated: instances that EC2 says are terminated, whatever their Nodes say.
        """
        up = {node.name: node for node in seen.nodes if _up(node, began, terminated)}
        before, self._stopping = self._stopping, {}
        for pod in seen.pods:
            if pod.deleting is not None:
                node = up.get(pod.node or "")
                self._stopping[pod.uid] = (
                    _again(before.pop(pod.uid), pod, node, began)
                    if pod.uid in before
                    else _first(seen.workload_of(pod), pod, node, began)
                )
        for gone in before.values():
            if gone is not None:
                self._end(gone, now, on_a_live_node=gone.pod.node in up)
        # Before `_told` is replaced: it needs the previous observation's view of the pods that ended.
        self._end_told(seen, now, up)
        self._told = dict(_told_pods(seen))
        self._looked = began

    def _end_told(self, seen: Observation, now: datetime, up: Collection[str]) -> None:
        """Take in the pods that ended by themselves before their deadline: most wrote a checkpoint."""
        if self._looked is None or now - self._looked > CLOSE:
            return
        for uid in seen.ended:
            known = self._told.get(uid)
            if known is None or known.node not in up:  # one whose node is lost was killed
                continue
            if known.since < now < known.deadline:
                took, at = ceil((now - known.since).total_seconds()), now.replace(microsecond=0)
                told = Samples(checkpoint=(Sample(uid=uid, at=at, seconds=took),))
                self.samples[known.gang] = self.samples.get(known.gang, Samples()).merged(told)

    def _end(self, gone: _Stopping, now: datetime, *, on_a_live_node: bool) -> None:
        pod, looked = gone.pod, self._looked
        if pod.stopping_since is None or pod.deleting is None or looked is None:
            return
        at = now.replace(microsecond=0)
        seen_to_end = on_a_live_node and gone.alive == looked and now - looked <= CLOSE
        if seen_to_end and now < pod.deleting:
            took = ceil((now - pod.stopping_since).total_seconds())
            told = Samples(stop=(Sample(uid=pod.uid, at=at, seconds=max(0, took)),))
        else:
            alive = gone.alive if on_a_live_node or gone.sure else gone.alive - UNNOTICED
            # A lower bound: the time until the pod was surely alive. A
            # node stays Ready for a while after its instance is gone.
            had = int((min(alive, pod.deleting) - pod.stopping_since).total_seconds())
            if had <= 0:
                return
            told = Samples(killed=(Sample(uid=pod.uid, at=at, seconds=had),))
        self.samples[gone.workload] = self.samples.get(gone.workload, Samples()).merged(told)


def _told_pods(seen: Observation) -> Iterator[tuple[str, _Told]]:
    """Yield the running pods that bear a deadline, by UID, each with when the notice came that named it."""
    nodes = [found for node in seen.nodes if (found := node.interruption) is not None]
    named = {
        deadline_text(found.deadline): (since, found.deadline)
        for found in nodes
        if found.deadline is not None and (since := found.deadline_told) is not None
    }
    for pod in seen.pods if named else ():
        told = named.get(pod.annotations.get(DEADLINE, ""))
        gang = gang_of(pod) or queued_gang_of(pod)
        if told and pod.deleting is None and gang is not None:
            since, deadline = told
            yield pod.uid, _Told(class_of(gang), pod.node, max(since, pod.created), deadline)


def _first(workload: Ref, pod: Pod, node: Node | None, now: datetime) -> _Stopping | None:
    """Return a pod that is seen to stop for the first time, if its end will tell something.

    One that never served stops at once: it does not tell how long the others take.
    """
    if node is None or not pod.ready or pod.stopping_since is None or not times_are_kept(workload):
        return None
    return _Stopping(workload, pod, now, _deadline(node) is not None)


def _again(known: _Stopping | None, pod: Pod, node: Node | None, now: datetime) -> _Stopping | None:
    """Return the same pod as it is now; its grace period may be shorter."""
    if known is None or node is None:
        return known and replace(known, pod=pod)
    return _Stopping(known.workload, pod, now, _deadline(node) is not None)


def _up(node: Node, now: datetime, terminated: Collection[str]) -> bool:
    """Whether what is on a node runs, as far as can be seen."""
    deadline = _deadline(node)
    return node.ready and node.instance not in terminated and (deadline is None or now < deadline)


def _deadline(node: Node) -> datetime | None:
    return None if node.interruption is None else node.interruption.deadline
