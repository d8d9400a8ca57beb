"""Headroom for replacements, claimed one by one so that two plans never count on the same place."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Final

from plimsoll.domain.capacity import replacement_of
from plimsoll.domain.fit import ClusterSnapshot
from plimsoll.domain.pods import Pod
from plimsoll.domain.replace.contention import Contention

MOST_UNSERVED: Final = 20


@dataclass(slots=True)
class Headroom:
    """The snapshot of one plan, and whether some of it is reserved for pods that leave later.

    The snapshot assigns places in our order; `contention` says which of them are sure in any other.
    """

    snapshot: ClusterSnapshot
    contention: Contention
    closed: frozenset[str] = frozenset()
    """Interrupted nodes: even a pod that tolerates their cordon has no place there."""
    unplaceable: Collection[str] = frozenset()
    """Uids of pods that no node and no node group can take."""
    crowded_out: Collection[str] = frozenset()
    """Uids of pods for which there is no place on the nodes that come either: if they ask for one, they take
    somebody else's."""
    short: Sequence[Pod] = ()
    """Pods that wait for a node, or will once their controller makes them, and have no place now."""
    unserved: Sequence[Pod] = ()
    """Those of them that wait although no node of their workload is interrupted, and of whose workload nothing
    serves: the first `MOST_UNSERVED`, since tenants may make any number."""
    reserved: bool = False
    """Some places wait for pods that cannot run twice. Until these have moved, nothing else may be
    Pending: kube-scheduler would give the place to whoever asks first."""

    def reserve(self, pod: Pod) -> str | None:
        """Claim a place as `move` does, and keep it from whoever could be Pending meanwhile."""
        place = self.move(pod)
        self.reserved = self.reserved or place is not None
        return place

    def move(self, pod: Pod) -> str | None:
        """Claim a place for a pod that leaves first and comes back elsewhere."""
        home = self.snapshot.where(pod)
        self.snapshot.remove(pod)
        place = self._place(pod)
        if place is None and home is not None:
            self.snapshot.place(pod, home)
        return place

    def add(self, pod: Pod) -> str | None:
        """Claim a place for a second pod like this one, which still runs."""
        return self._place(replacement_of(pod))

    def takes_from_others(self, pod: Pod) -> bool:
        """Whether kube-scheduler would preempt Ready pods of a lower priority for a pod that waits.

        Pods of a negative priority do not count: they hold places until somebody needs them.
        """
        if pod.priority <= 0:
            return False
        trial = self.snapshot.copy()
        for name, node in self.snapshot.nodes.items():
            lower = [
                p for p in self.snapshot.on(name) if p.ready and 0 <= p.priority < pod.priority
            ]
            if not lower or name in self.closed:
                continue
            for victim in lower:
                trial.remove(victim)
            if trial.why_not(pod, node) is None:
                return True
        return False

    def gives_way(self, pod: Pod) -> bool:
        """Whether another pod in its place, which would serve nobody, could take that of one that serves."""
        return not pod.restarts and any(
            p.restarts and p.uid not in self.unplaceable and p.priority >= pod.priority
            for p in self.short
        )

    def displaced_by(self, pod: Pod) -> Pod | None:
        """Return a newer unserved pod that would have the place of this one, which does not serve yet.

        The place of an older pod nobody took: it waited before this one came.
        """
        node = self.snapshot.nodes.get(self.snapshot.where(pod) or "")
        if node is None or not self.unserved:
            return None
        self.snapshot.remove(pod)
        fits = (
            other
            for other in self.unserved
            if other.created > pod.created and other.priority >= pod.priority
            if self.snapshot.why_not(other, node) is None
        )
        found = next(fits, None)
        self.snapshot.place(pod, node.name)
        return found

    def fits_without(self, pod: Pod, other: Pod) -> bool:
        """Whether a pod would have a place if another one left."""
        home = self.snapshot.where(other)
        self.snapshot.remove(other)
        fits = self.snapshot.choose(pod, self.closed) is not None
        if home is not None:
            self.snapshot.place(other, home)
        return fits

    def _place(self, pod: Pod) -> str | None:
        node = self.snapshot.choose(pod, self.closed)
        if node is None:
            return None
        self.snapshot.place(pod, node.name)
        return node.name
