"""Headroom for replacements, claimed one by one so that two plans never count on the same place."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from typing import Final

from plimsoll.domain.kubernetes import Pod, replacement_of, successor_of
from plimsoll.domain.scheduling.cluster_snapshot import ClusterSnapshot
from plimsoll.domain.scheduling.contention import Contention
from plimsoll.domain.scheduling.preemption import BudgetsIn, first_choice, stops_soon, victims_for

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
    budgets_in: BudgetsIn = field(default_factory=dict)
    unplaceable: Collection[str] = frozenset()
    """Uids of pods that no node and no node group can take."""
    out_of_time: Collection[str] = frozenset()
    """Uids of pods that leave in a moment, whether a node comes or not."""
    crowded_out: Collection[str] = frozenset()
    """Uids of pods for which there is no place on the nodes that come either: if they ask for one, they take
    somebody else's."""
    refused_everywhere: bool = False
    """Whether no node comes, as far as refusals tell: whoever leaves without a place has none in time."""
    short: Sequence[Pod] = ()
    """Pods that wait for a node, or will once their controller makes them, and have no place now."""
    unserved: Sequence[Pod] = ()
    """Those of them that wait although no node of their workload is interrupted, and of whose workload nothing
    serves: the first `MOST_UNSERVED`, since tenants may make any number."""
    reserved: bool = False
    """Some places wait for pods that cannot run twice, or for the first replacements of workloads, which are
    made in this plan. Until these have them, nothing else may be Pending: kube-scheduler would give the place
    to whoever asks first."""
    preempting: str | None = None
    """The uid of the one pod that is to have the place of pods of a lower priority which serve."""
    _hopeless: set[tuple[int, int]] = field(default_factory=set)
    """Identity of a template, and priority, for which pods of a lower priority would make way nowhere."""

    def reserve(self, pod: Pod, *, preempts: bool = True) -> str | None:
        """Claim a place as `move` does, and keep it from whoever could be Pending meanwhile.

        A place near its volumes where others make way is also kept from replacements that come before: kube-scheduler
        places as many as it can where one of them was made room.

        Args:
            pod: the pod, which leaves first.
            preempts: whether the place may be that of pods of a lower priority, where no node comes in time.
        """
        place = self.move(pod)
        if place is None:
            place = self._preempt(pod) if preempts else None
        elif pod.scheduling.claims and pod.deleting is None and self.snapshot.preempts(pod):
            self.contention.keep(pod)
        self.reserved = self.reserved or place is not None
        return place

    def move(self, pod: Pod) -> str | None:
        """Claim a place for a pod that leaves first and comes back elsewhere."""
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

    def takes_from_others(self, pod: Pod) -> bool:
        """Whether kube-scheduler would preempt Ready pods of a lower priority for a pod that waits.

        Pods of a negative priority do not count: they hold places until somebody needs them.
        """
        if pod.priority <= 0:
            return False
        found = victims_for(self.snapshot, pod, self.closed, {})
        return any(p.ready and p.priority >= 0 for _, victims in found for p in victims)

    def holds(self, pod: Pod) -> bool:
        """Whether a pod with a place may leave now, since nobody else can take the place first."""
        return pod.uid == self.preempting or self.contention.holds(pod)

    def _preempt(self, pod: Pod) -> str | None:
        """Claim the place of pods of a lower priority that stop soon, for one pod in a plan.

        Pods of its own or a higher priority that wait may preempt the same ones: then it is not sure. Nor where
        there are many kinds of them, since tenants may make any number.
        """
        if self.preempting or not (pod.uid in self.unplaceable or pod.uid in self.out_of_time):
            return None
        template = id(pod.scheduling), pod.priority
        if pod.priority <= 0 or template in self._hopeless:
            return None
        found = first_choice(victims_for(self.snapshot, pod, self.closed, self.budgets_in))
        if found is None or not all(map(stops_soon, found[1])):
            self._hopeless.add(template)
            return None
        node, victims = found
        waiting = {id(p.scheduling): p for p in self.short if p.priority >= pod.priority}
        if len(waiting) > MOST_UNSERVED or any(
            self.snapshot.must_leave(p, node, victims) is not None for p in waiting.values()
        ):
            return None
        for victim in victims:
            self.snapshot.remove(victim)
            self.contention.join(replacement_of(victim))
        self.snapshot.place(successor_of(pod), node.name)
        self.preempting = pod.uid
        return node.name

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
        """Whether a pod has no place, and would have one if another one left."""
        if self.snapshot.choose(pod, self.closed) is not None:
            return False
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
