"""Whether a place is sure while several pods ask for one, and nobody knows who is asked first.

A plan assigns places in one order; kube-scheduler takes another, and its own choice of nodes. So a
pod that leaves and counts on a place has it for sure only when all the others that may come before
it, however they are placed, cannot fill every node that it fits on. That is answered by counting,
on the safe side: each of the others that fit on one of these nodes is taken to be as large as the
largest of them, and to go where it does the most harm. In doubt the answer is no, and a second later they have their places.

Not looked at: that others of its kind may come to stand where its spread constraints forbid it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from plimsoll.domain.fit import ClusterSnapshot
from plimsoll.domain.pods import Pod, Scheduling
from plimsoll.domain.quantities import Resources

type _Slack = Mapping[str, Resources]
"""For each node that a pod fits on, by name, what is left beside it."""


@dataclass(slots=True)
class _Rivals:
    """Pods that may come to stand on one of the nodes that a pod fits on."""

    count: int = 0
    largest: Resources = field(default_factory=Resources)

    def add(self, scheduling: Scheduling, count: int) -> None:
        self.count += count
        self.largest = self.largest.larger(scheduling.requests)


class Contention:
    """Pods that ask for a place at about the same time, and those to whom one was promised."""

    def __init__(self, snapshot: ClusterSnapshot, closed: frozenset[str] = frozenset()) -> None:
        """Begin with nobody.

        Args:
            snapshot: only pods that are bound stand on it; it is not changed, nor may it change.
            closed: nodes that are no place for anybody, whatever it tolerates.
        """
        self._snapshot = snapshot
        self._closed = closed
        # By the identity of their scheduling: those of one template are as strong.
        self._joined: dict[int, tuple[Pod, int]] = {}
        self._promised: dict[int, tuple[Pod, _Rivals]] = {}
        self._known: dict[int, tuple[Scheduling, _Slack]] = {}
        self._strong: dict[tuple[int, Resources], int] = {}

    def join(self, pod: Pod, count: int = 1) -> None:
        """Add pods that ask for a place at any moment."""
        if count <= 0:
            return
        key = id(pod.scheduling)
        before = self._joined[key][1] if key in self._joined else 0
        self._joined[key] = pod, before + count
        for one, rivals in self._promised.values():
            if self._meet(one, pod):
                rivals.add(pod.scheduling, count)

    def promise(self, pod: Pod) -> None:
        """Add a pod that left, or leaves now, and needs a place; its old one is not counted."""
        key = id(pod.scheduling)
        if key not in self._promised and self._slack(pod):
            self._promised[key] = pod, self._rivals(pod)
        self.join(pod)

    def holds(self, pod: Pod) -> bool:
        """Whether a pod may leave now: it, and all with a promise, have a place for sure."""
        rivals = self._rivals(pod)
        rivals.add(pod.scheduling, 1)
        return self._strength(pod, rivals.largest) >= rivals.count and all(
            self._spare(one, others, pod) >= 1
            for one, others in self._promised.values()
            if self._meet(one, pod)
        )

    def spares(self, pod: Pod, wanted: int) -> int:
        """Return how many pods like this one may be made beside the promises, at most `wanted`."""
        spare = (
            self._spare(one, others, pod)
            for one, others in self._promised.values()
            if self._meet(one, pod)
        )
        return max(0, min((*spare, wanted)))

    def _spare(self, one: Pod, rivals: _Rivals, pod: Pod) -> int:
        """Return how many pods like `pod` may come beside the rivals of one with a promise, itself one."""
        largest = rivals.largest.larger(pod.scheduling.requests)
        return self._strength(one, largest) - rivals.count

    def _rivals(self, pod: Pod) -> _Rivals:
        found = _Rivals()
        for other, count in self._joined.values():
            if self._meet(pod, other):
                found.add(other.scheduling, count)
        return found

    def _meet(self, pod: Pod, other: Pod) -> bool:
        """Whether there is a node that both fit on: who never comes to a node takes no place there."""
        return not self._slack(pod).keys().isdisjoint(self._slack(other))

    def _strength(self, pod: Pod, largest: Resources) -> int:
        """Return how many others it takes at least to fill every node that a pod fits on."""
        slack, need = self._slack(pod), pod.scheduling.requests
        if _picky(pod.scheduling):
            return len(slack)
        key = id(pod.scheduling), largest
        if key not in self._strong:
            self._strong[key] = sum(_until_full(need, left, largest) for left in slack.values())
        return self._strong[key]

    def _slack(self, pod: Pod) -> _Slack:
        known = self._known.get(id(pod.scheduling))
        if known is None:
            need = pod.scheduling.requests
            slack = {
                node.name: self._snapshot.free(node.name) - need
                for node in self._snapshot.candidates(pod)
                if node.name not in self._closed
            }
            known = self._known[id(pod.scheduling)] = (pod.scheduling, slack)
        return known[1]


def _picky(scheduling: Scheduling) -> bool:
    """Whether one pod may be enough to spoil a node for it, however small."""
    return bool(scheduling.host_ports or scheduling.affinity or scheduling.anti_affinity)


def _until_full(need: Resources, slack: Resources, largest: Resources) -> int:
    """Return how many of the largest it takes on a node until one who needs this much is shut out.

    What it does not ask for cannot shut it out.
    """
    have, take = dict(slack.extended), dict(largest.extended)
    amounts = [
        (need.cpu, slack.cpu, largest.cpu),
        (need.memory, slack.memory, largest.memory),
        (need.pods, slack.pods, largest.pods),
        *((amount, have.get(name, 0), take.get(name, 0)) for name, amount in need.extended),
    ]
    return 1 + min(left // each for asked, left, each in amounts if asked and each)
