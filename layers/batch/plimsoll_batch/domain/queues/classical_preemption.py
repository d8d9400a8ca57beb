"""Classical preemption, in trees by priority."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain

from plimsoll_batch.domain.queues.attempt import Attempt, Holder, Victim, policy_of, queues_below


class Classical:
    """First the candidates that the quota of its own subtree entitles it to, then by priority."""

    def __init__(self, attempt: Attempt) -> None:
        self._attempt = attempt
        self._policy = policy_of(attempt.queue)
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
            if not any(node.borrows(i) for i in attempt.contested):
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
