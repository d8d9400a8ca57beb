"""How pods end while a reconcile looks: consecutive observations of one cluster, about a second apart.

A list tells only which pods are stopping. The next observation tells which of them are gone, and so how long they took:
from `deletionTimestamp` less `deletionGracePeriodSeconds` until they were no longer listed. Pods are listed until their phase is
Succeeded or Failed, which the kubelet writes once their containers have ended.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from math import ceil
from typing import Final

from plimsoll.domain.nodes import Node
from plimsoll.domain.observation import Observation
from plimsoll.domain.observed_times import Sample, Samples, remembered
from plimsoll.domain.pods import Pod, Ref

CLOSE: Final = timedelta(seconds=5)
"""Two observations further apart do not tell when a pod was gone."""


@dataclass(frozen=True, slots=True)
class _Stopping:
    workload: Ref
    pod: Pod
    alive: datetime | None
    """When it was last seen while its node was up."""


@dataclass(slots=True)
class Endings:
    """The pods that one reconcile sees stop."""

    samples: dict[Ref, Samples] = field(default_factory=dict)
    """What they told."""
    _stopping: dict[str, _Stopping | None] = field(default_factory=dict)
    """By UID; None for a pod that tells nothing."""
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
        up = {node.name for node in seen.nodes if _up(node, began, terminated)}
        before, self._stopping = self._stopping, {}
        for pod in seen.pods:
            if pod.deleting is not None:
                known = before.pop(pod.uid) if pod.uid in before else self._first(seen, pod, began)
                if known is not None:
                    alive = began if pod.node in up else known.alive
                    known = _Stopping(known.workload, pod, alive)
                self._stopping[pod.uid] = known
        for gone in before.values():
            if gone is not None:
                self._end(gone, now, on_a_live_node=gone.pod.node in up)
        self._looked = began

    def _first(self, seen: Observation, pod: Pod, began: datetime) -> _Stopping | None:
        """Return a pod that is seen to stop for the first time, if its end will tell something.

        One that never served stops at once: it does not tell how long the others take.
        """
        workload = seen.workload_of(pod)
        if not pod.ready or pod.stopping_since is None or not remembered(workload):
            return None
        return _Stopping(workload, pod, began)

    def _end(self, gone: _Stopping, now: datetime, *, on_a_live_node: bool) -> None:
        pod, looked = gone.pod, self._looked
        if pod.stopping_since is None or pod.deleting is None or looked is None:
            return
        at = now.replace(microsecond=0)
        seen_to_end = on_a_live_node and gone.alive == looked and now - looked <= CLOSE
        if seen_to_end and now < pod.deleting:
            took = ceil((now - pod.stopping_since).total_seconds())
            told = Samples(stop=(Sample(uid=pod.uid, at=at, seconds=max(0, took)),))
        elif gone.alive is not None:
            had = int((min(gone.alive, pod.deleting) - pod.stopping_since).total_seconds())
            if had <= 0:
                return
            told = Samples(killed=(Sample(uid=pod.uid, at=at, seconds=had),))
        else:
            return
        self.samples[gone.workload] = self.samples.get(gone.workload, Samples()).merged(told)


def _up(node: Node, now: datetime, terminated: Collection[str]) -> bool:
    """Whether what is on a node surely runs: a Node says Ready for a while after its instance is gone."""
    deadline = None if node.interruption is None else node.interruption.deadline
    return node.ready and node.instance not in terminated and (deadline is None or now < deadline)
