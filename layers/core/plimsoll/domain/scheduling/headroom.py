"""Headroom for replacements, claimed one by one so that two plans never count on the same place."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass

from plimsoll.domain.kubernetes import Pod, replacement_of, successor_of
from plimsoll.domain.scheduling.cluster_snapshot import ClusterSnapshot
from plimsoll.domain.scheduling.contention import Contention


@dataclass(slots=True)
class Headroom:
    """The places that a plan has not claimed yet, and whether some are reserved for pods that leave later.

    Each phase takes the headroom that the one before it leaves, claims places by the methods below, and returns what
    is left. The headroom that it took is used up: both share one snapshot, since a copy of thousands of nodes costs
    more than a phase. Facts are replaced, never assigned.

    The snapshot assigns places in our order; `contention` says which of them are sure in any other.
    """

    snapshot: ClusterSnapshot
    contention: Contention
    closed: frozenset[str] = frozenset()
    """Interrupted nodes: even a pod that tolerates their cordon has no place there."""
    unplaceable: Collection[str] = frozenset()
    """Uids of pods that no node and no node group can take."""
    short: Sequence[Pod] = ()
    """Pods that wait for a node, or will once their controller makes them, and have no place now."""
    reserved: bool = False
    """Some places wait for pods that cannot run twice, or for the first replacements of workloads, which are
    made in this plan. Until these have them, nothing else may be Pending: kube-scheduler would give the place
    to whoever asks first."""

    def reserve(self, pod: Pod) -> str | None:
        """Claim a place as `move` does, and keep it from whoever could be Pending meanwhile.

        A place near its volumes where others make way is also kept from replacements that come before: kube-scheduler
        places as many as it can where one of them was made room.
        """
        place = self.move(pod)
        if (
            place is not None
            and pod.scheduling.claims
            and pod.deleting is None
            and self.snapshot.preempts(pod)
        ):
            self.contention.keep(pod)
        self.reserved = self.reserved or place is not None
        return place

    def keep_from_pending(self) -> None:
        """Let nothing be Pending without a place from now on, because a replacement of this plan needs what is free."""
        self.reserved = True

    def move(self, pod: Pod) -> str | None:
        """Claim a place for a pod that leaves first and comes back elsewhere."""
        # Removed first, since its own requests and anti-affinity are free once it leaves; put back where no other place is found.
        home = self.snapshot.where(pod)
        self.snapshot.remove(pod)
        place = self._place(successor_of(pod))
        if place is None and home is not None:
            self.snapshot.place(pod, home)
        return place

    def stay(self, pod: Pod, home: str | None) -> None:
        """Give the place that `move` claimed back: the pod stands where it stood in this plan before."""
        self.snapshot.remove(pod)
        if home is not None:
            self.snapshot.place(pod, home)

    def add(self, pod: Pod) -> str | None:
        """Claim a place for a second pod like this one, which still runs."""
        return self._place(replacement_of(pod))

    def holds(self, pod: Pod) -> bool:
        """Whether a pod with a place may leave now, since nobody else can take the place first."""
        return self.contention.holds(pod)

    def gives_way(self, pod: Pod) -> bool:
        """Whether another pod in its place, which would serve nobody, could take that of one that serves."""
        return not pod.restarts and any(
            p.restarts and p.uid not in self.unplaceable and p.priority >= pod.priority
            for p in self.short
        )

    def fits_without(self, pod: Pod, other: Pod) -> bool:
        """Whether a pod has no place, and would have one if another one left."""
        if self.snapshot.choose(pod, self.closed) is not None:
            return False
        home = self.snapshot.where(other)
        self.snapshot.remove(other)
        fits = self.snapshot.choose(pod, self.closed) is not None
        # Put back in any case: this only asks, and the other pod still serves.
        if home is not None:
            self.snapshot.place(other, home)
        return fits

    def _place(self, pod: Pod) -> str | None:
        node = self.snapshot.choose(pod, self.closed)
        if node is None:
            return None
        self.snapshot.place(pod, node.name)
        return node.name
