"""Which running gangs make way for one that waits.

As Kueue's: classical preemption in trees by priority, and preemption by shares in all others. Both take
candidates one after the other until the gang fits, and then put back, the last taken first, each that
need not have been taken. https://kueue.sigs.k8s.io/docs/concepts/preemption/

Two things are ours. Fitting means nodes too: nobody is stopped for a gang that would find no place. And
where quota is free but nodes are not, the same candidates in the same order make way.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import chain
from typing import assert_never

from plimsoll_batch.domain.quota.admission_attempt import (
    Attempt,
    Holder,
    Victim,
    is_over,
    queues_below,
)
from plimsoll_batch.domain.quota.cohorts import Cohort, Order, Strategy
from plimsoll_batch.domain.quota.quota_tree import QuotaNode
from plimsoll_batch.domain.quota.shares import Share


def victims_of(attempt: Attempt) -> Sequence[Victim]:
    """Return who makes way; nobody where the gang would not fit all the same. Usage is left as it was."""
    by_priority = attempt.queue.order is Order.PRIORITY
    return _Classical(attempt).victims() if by_priority else _ByShares(attempt).victims()


class _Classical:
    """In trees by priority: first the candidates that the quota of its own subtree entitles it to, then by priority."""

    def __init__(self, attempt: Attempt) -> None:
        self._attempt = attempt
        self._policy = attempt.queue.may_preempt
        entitled, lesser = self._elsewhere()
        own = sorted(attempt.own(), key=lambda h: h.order)
        self._entitled = sorted(entitled, key=lambda h: h.order)
        self._lesser = sorted(lesser, key=lambda h: h.order)
        kinds = (self._entitled, self._lesser, own)
        self._candidates = [
            *chain.from_iterable([h for h in kind if h.running.stopping] for kind in kinds),
            *chain.from_iterable([h for h in kind if not h.running.stopping] for kind in kinds),
        ]
        self._entitled_set = set(self._entitled)

    def victims(self) -> Sequence[Victim]:
        """Return who makes way; nobody where it would not fit all the same. Usage is left as it was."""
        for borrow in self._attempts():
            taken: list[Victim] = []
            for holder in self._candidates:
                reason = self._why(holder, borrow=borrow)
                if reason is None:
                    continue
                self._attempt.take(holder)
                taken.append(Victim(holder=holder, reason=reason))
                if self._attempt.fits(borrow=borrow):
                    return self._attempt.filled_back(taken, borrow=borrow)
            self._attempt.restore_all(taken)
        return ()

    def _attempts(self) -> tuple[bool, ...]:
        """Return whether it may borrow, in the order in which that is tried."""
        elsewhere = bool(self._entitled or self._lesser)
        queue = self._attempt.queue
        under = all(queue.usage[i] < queue.nominal[i] for i in self._attempt.contested)
        if not elsewhere or (not self._policy.borrow and not under):
            return (True,)
        return (False, True) if not self._policy.borrow and not self._entitled else (True, False)

    def _elsewhere(self) -> tuple[list[Holder], list[Holder]]:
        """Return candidates of other queues: those its subtree's quota entitles it to, and the others."""
        attempt, entitled, lesser = self._attempt, list[Holder](), list[Holder]()
        left = dict(attempt.amounts)
        fits, below = False, attempt.queue
        for above in below.path():
            if above is not below:
                queues = chain.from_iterable(
                    queues_below(child) for child in above.children if child is not below
                )
                (entitled if fits else lesser).extend(attempt.others(queues))
            fits = fits or not any(above.borrows(i, amount) for i, amount in left.items())
            left = {i: max(0, amount - above.local_available(i)) for i, amount in left.items()}
            below = above
        return entitled, lesser

    def _why(self, holder: Holder, *, borrow: bool) -> str | None:
        """Say why a candidate may be taken now; None where it may not."""
        attempt = self._attempt
        if holder.queue is attempt.queue:
            return "it has a lower priority, or is newer, in the same queue"
        if holder not in self._entitled_set and borrow and not self._may_borrow(holder):
            return None
        shared = set(attempt.queue.path())
        for node in holder.queue.path():
            if node in shared:
                break
            if not any(node.borrows(i) for i in attempt.wanted):
                return None
        if holder in self._entitled_set:
            return f"{holder.queue!r} borrows quota that {attempt.queue!r} is entitled to"
        return f"{holder.queue!r} borrows, and it has a lower priority"

    def _may_borrow(self, holder: Holder) -> bool:
        policy, priority = self._policy, holder.running.gang.priority
        gang = self._attempt.gang
        below = priority < gang.priority and holder.running.gang.uid not in gang.made_way_for
        least = policy.borrow_threshold is None or priority <= policy.borrow_threshold
        return policy.borrow and below and least


class _ByShares:
    """In all other trees: from the queue with the largest share, as long as the gang's own stays below it."""

    def __init__(self, attempt: Attempt) -> None:
        self._attempt = attempt
        self._shares = attempt.shares[attempt.queue.order]
        self._path = list(attempt.queue.path())
        root = self._path[-1].definition
        self._strategies = root.strategies if isinstance(root, Cohort) else ()
        self._flat = attempt.queue.order is Order.DRF

    def victims(self) -> Sequence[Victim]:
        """Return who makes way; nobody where it would not fit all the same. Usage is left as it was."""
        attempt, amounts = self._attempt, self._attempt.amounts
        elsewhere = [queue for queue in queues_below(self._path[-1]) if queue is not attempt.queue]
        candidates: dict[QuotaNode, list[Holder]] = {}
        for holder in chain(attempt.own(), attempt.others(elsewhere)):
            candidates.setdefault(holder.queue, []).append(holder)
        for holders in candidates.values():
            holders.sort(key=lambda h: h.order, reverse=True)  # the next one is the last
        # Counted before shares are compared: the comparison is about the queue with this gang in it.
        attempt.queue.add_all(amounts)
        taken: list[Victim] = []
        done = False
        for strategy, single in zip(self._strategies, (False, True), strict=False):
            refused: dict[QuotaNode, list[Holder]] = {}
            done = self._take(candidates, strategy, taken, refused, single=single)
            if done:
                break
            candidates = {queue: holders[::-1] for queue, holders in refused.items()}
        attempt.queue.remove_all(amounts)
        if done:
            return attempt.filled_back(taken)
        attempt.restore_all(taken)
        return ()

    def _take(
        self,
        candidates: dict[QuotaNode, list[Holder]],
        strategy: Strategy,
        taken: list[Victim],
        refused: dict[QuotaNode, list[Holder]],
        *,
        single: bool,
    ) -> bool:
        """Take candidates until the gang fits; return whether it does.

        Args:
            candidates: by queue, the next one last. It is used up.
            strategy: which may be taken.
            taken: gets who was.
            refused: gets who was not.
            single: ask of each queue once, and go on to the next.
        """
        pruned: set[QuotaNode] = set()
        while (queue := self._largest(candidates, pruned)) is not None:
            holders = candidates[queue]
            while holders:
                holder = holders.pop()
                reason = self._why(holder, strategy)
                if reason is None:
                    refused.setdefault(queue, []).append(holder)
                    if single:
                        break
                    continue
                self._attempt.take(holder)
                taken.append(Victim(holder=holder, reason=reason))
                if self._fits():
                    return True
                break  # another queue may have the largest share now
            if single or not holders:
                del candidates[queue]
        return False

    def _fits(self) -> bool:
        """Whether the gang, which is counted already, fits."""
        queue, amounts = self._attempt.queue, self._attempt.amounts
        queue.remove_all(amounts)
        fits = self._attempt.fits()
        queue.add_all(amounts)
        return fits

    def _largest(
        self, candidates: Mapping[QuotaNode, list[Holder]], pruned: set[QuotaNode]
    ) -> QuotaNode | None:
        """Return the queue with candidates that is reached by the largest share at each level.

        Of equal shares it is the one whose next candidate comes first. Subtrees within their quota are passed
        over, but for those that hold the gang's own queue.
        """
        root = self._path[-1]
        if not root.children:
            return root if root in candidates else None
        following = sorted((holders[-1] for holders in candidates.values()), key=lambda h: h.order)
        first = {node: h.order for h in reversed(following) for node in h.queue.path()}
        living = first.keys() - pruned
        node = root
        while node.children:
            below = queues_below(node) if self._flat else node.children
            open_ = [
                child
                for child in below
                if child in living and (child in self._path or is_over(child))
            ]
            if open_:
                shares = {child: self._shares.of(child) for child in open_}
                largest = max(shares.values())
                node = min((c for c in open_ if shares[c] == largest), key=first.__getitem__)
            elif node is root:
                return None
            else:
                pruned.add(node)
                living.discard(node)
                node = root
        return node

    def _why(self, holder: Holder, strategy: Strategy) -> str | None:
        """Say why a candidate may be taken now; None where it may not."""
        attempt, queue = self._attempt, holder.queue
        if queue is attempt.queue:
            return "it has a lower priority, or is newer, in the same queue"
        mine = {i for i in attempt.wanted if attempt.queue.borrows(i)}
        entitled = mine.isdisjoint(attempt.contested)
        if entitled and any(queue.borrows(i) for i in attempt.wanted if i not in mine):
            return f"{queue!r} borrows quota that {attempt.queue!r} is entitled to"
        # After what a queue is entitled to, which comes back at once: shares change with each start and each end,
        # and a gang that is stopped for each change gets nothing done.
        if holder.running.gang.uid in attempt.gang.made_way_for or not attempt.has_run(holder):
            return None
        ours, theirs = self._compared(queue)
        if ours.definition.weight and not theirs.definition.weight:
            return f"{theirs!r} borrows at a weight of 0"
        share = self._shares.of(ours)
        match strategy:
            case Strategy.LESS_THAN_OR_EQUAL_TO_FINAL_SHARE:
                holder.queue.remove_all(holder.amounts)
                left = self._shares.of(theirs)
                holder.queue.add_all(holder.amounts)
                return (
                    None if share > left else f"{theirs!r} keeps as large a share as {ours!r} gets"
                )
            case Strategy.LESS_THAN_INITIAL_SHARE:
                has: Share = self._shares.of(theirs)
                return None if share >= has else f"{theirs!r} has a larger share than {ours!r} gets"
            case _:
                assert_never(strategy)

    def _compared(self, queue: QuotaNode) -> tuple[QuotaNode, QuotaNode]:
        """Return the subtrees of the gang and of a candidate, just below what holds both."""
        if self._flat:
            return self._attempt.queue, queue
        above = list(queue.path())
        ours, theirs = self._attempt.queue, queue
        for mine, other in zip(reversed(self._path), reversed(above), strict=False):
            ours, theirs = mine, other
            if mine is not other:
                break
        return ours, theirs
