"""Room for replacements, claimed one by one so that two plans never count on the same place."""

from __future__ import annotations

from dataclasses import dataclass

from plimsoll.domain.capacity import replacement_of
from plimsoll.domain.fit import ClusterSnapshot
from plimsoll.domain.pods import Pod
from plimsoll.domain.replace.contention import Contention


@dataclass(slots=True)
class Headroom:
    """The snapshot of one plan, and whether some of it is kept for pods that leave later.

    The snapshot assigns places in our order; `contention` says which of them are sure in any other.
    """

    snapshot: ClusterSnapshot
    contention: Contention
    closed: frozenset[str] = frozenset()
    """Interrupted nodes: even a pod that tolerates their cordon has no place there."""
    kept: bool = False
    """Some places wait for pods that cannot run twice. Until these have moved, nothing else may be
    Pending: kube-scheduler would give the place to whoever asks first."""

    def keep(self, pod: Pod) -> str | None:
        """Claim a place as `move` does, and keep it from whoever could be Pending meanwhile."""
        place = self.move(pod)
        self.kept = self.kept or place is not None
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

    def _place(self, pod: Pod) -> str | None:
        node = self.snapshot.choose(pod, self.closed)
        if node is None:
            return None
        self.snapshot.place(pod, node.name)
        return node.name
