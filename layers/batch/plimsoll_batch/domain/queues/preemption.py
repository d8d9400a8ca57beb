"""Which running gangs make way for one that waits.

As Kueue's: classical preemption in trees by priority, and preemption by shares in all others. Both take
candidates one after the other until the gang fits, and then put back, the last taken first, each that
need not have been taken. https://kueue.sigs.k8s.io/docs/concepts/preemption/

Two things are ours. Fitting means nodes too: nobody is stopped for a gang that would find no place. And
where quota is free but nodes are not, the same candidates in the same order make way.
"""

from __future__ import annotations

from collections.abc import Sequence

from plimsoll_batch.domain.queues.attempt import Attempt, Victim
from plimsoll_batch.domain.queues.classical_preemption import Classical
from plimsoll_batch.domain.queues.fair_preemption import ByShares
from plimsoll_batch.domain.queues.forest import Order


def victims_of(attempt: Attempt) -> Sequence[Victim]:
    """Return who makes way; nobody where the gang would not fit all the same. Usage is left as it was."""
    by_priority = attempt.queue.order is Order.PRIORITY
    return Classical(attempt).victims() if by_priority else ByShares(attempt).victims()
