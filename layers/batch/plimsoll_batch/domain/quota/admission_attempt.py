"""A gang that does not fit, and the running gangs that could make way for it."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime

from plimsoll_batch.domain.jobs import Gang, RunningGang
from plimsoll_batch.domain.quota.cohorts import Order, Reclaim, WithinQueue
from plimsoll_batch.domain.quota.quota_tree import Amounts, QuotaNode, nodes_below
from plimsoll_batch.domain.quota.shares import Shares


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Holder:
    """A running gang in its queue."""

    queue: QuotaNode
    running: RunningGang
    amounts: Amounts

    @property
    def order(self) -> tuple[bool, int, float, str]:
        """What candidates of one kind are ordered by: who stops already, low priority, newly admitted."""
        gang = self.running.gang
        return (
            not self.running.stopping,
            gang.priority,
            -self.running.admitted.timestamp(),
            gang.uid,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Victim:
    """A running gang that makes way, and why."""

    holder: Holder
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Attempt:
    """A gang that does not fit, and what may be done about it."""

    queue: QuotaNode
    gang: Gang
    amounts: Amounts
    holders: Mapping[QuotaNode, Collection[Holder]]
    """Queue -> what runs in it."""
    shares: Mapping[Order, Shares]
    now: datetime
    has_nodes: Callable[[], bool]
    """Whether it would be placed now."""
    took: Callable[[Holder], None]
    """Told of each that is taken off its nodes."""
    put_back: Callable[[Holder], None]
    contested: Sequence[int] = field(init=False)
    """What it lacks of quota, or all it asks for where it only lacks nodes."""
    wanted: Sequence[int] = field(init=False)
    """What others may hold of it: what it lacks of quota, and all it asks for where it lacks nodes."""
    lacks_nodes: bool = field(init=False)

    def __post_init__(self) -> None:
        """Note what it is about."""
        short = [i for i, amount in self.amounts if amount > self.queue.available(i)]
        every = [i for i, _ in self.amounts]
        lacks_nodes = not self.has_nodes()
        object.__setattr__(self, "contested", short or every)
        object.__setattr__(self, "wanted", every if lacks_nodes else self.contested)
        object.__setattr__(self, "lacks_nodes", lacks_nodes)

    def fits(self, *, borrow: bool = True) -> bool:
        """Whether quota and nodes hold it now."""
        return self.queue.holds(self.amounts, borrow=borrow) and self.has_nodes()

    def take(self, holder: Holder) -> None:
        """Take a gang out of its queue and off its nodes."""
        holder.queue.remove_all(holder.amounts)
        self.took(holder)

    def restore(self, holder: Holder) -> None:
        """Undo that."""
        holder.queue.add_all(holder.amounts)
        self.put_back(holder)

    def filled_back(self, taken: list[Victim], *, borrow: bool = True) -> Sequence[Victim]:
        """Put back whoever need not have been taken, but the last, and then all the others."""
        kept = taken[-1:]
        for victim in reversed(taken[:-1]):
            self.restore(victim.holder)
            if not self.fits(borrow=borrow):
                self.take(victim.holder)
                kept.append(victim)
        self.restore_all(kept)
        return kept[::-1]

    def restore_all(self, taken: Iterable[Victim]) -> None:
        """Leave usage as it was."""
        for victim in taken:
            self.restore(victim.holder)

    def own(self) -> Iterator[Holder]:
        """Yield what it may preempt in its own queue."""
        policy = self.queue.may_preempt.within_queue
        if policy is WithinQueue.NEVER:
            return
        newer = policy is WithinQueue.LOWER_OR_NEWER_EQUAL_PRIORITY
        for holder in self.holders.get(self.queue, ()):
            other = holder.running.gang
            lower = other.priority < self.gang.priority
            equal = newer and other.priority == self.gang.priority
            if self._uses(holder) and (lower or (equal and _after(other, self.gang))):
                yield holder

    def others(self, queues: Iterable[QuotaNode]) -> Iterator[Holder]:
        """Yield what it may preempt in other queues, as far as its priority decides."""
        policy = self.queue.may_preempt.reclaim
        if policy is Reclaim.NEVER:
            return
        for queue in queues:
            if not is_over(queue):
                continue  # it has no more than it is entitled to
            for holder in self.holders.get(queue, ()):
                lower = holder.running.gang.priority < self.gang.priority
                if self._uses(holder) and (lower or policy is Reclaim.ANY):
                    yield holder

    def has_run(self, holder: Holder) -> bool:
        """Whether a gang has run as long as its queue asks for, or stops already."""
        running = holder.running
        ran = self.now - running.admitted
        return running.stopping or ran >= holder.queue.may_preempt.minimum_run

    def _uses(self, holder: Holder) -> bool:
        running = holder.running
        uses = any(i in self.wanted for i, _ in holder.amounts)
        return not running.stays and (uses or (self.lacks_nodes and bool(running.on_nodes)))


def _after(other: Gang, gang: Gang) -> bool:
    return (other.since, other.uid) > (gang.since, gang.uid)


def queues_below(node: QuotaNode) -> Iterator[QuotaNode]:
    """Return the queues of a subtree."""
    return (each for each in nodes_below([node]) if not each.children)


def is_over(node: QuotaNode) -> bool:
    """Whether a subtree uses more than its quota of anything."""
    return any(used > whole for used, whole in zip(node.usage, node.subtree, strict=True))
