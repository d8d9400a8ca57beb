"""The queues of a moment, one by one: quota, use, what is borrowed, the share, and who waits for what."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from plimsoll_batch.domain.admission import QueuePlan, QueueSnapshot, QueueState
from plimsoll_batch.domain.jobs import Gang
from plimsoll_batch.domain.quota import Order, QuotaNode


class Wait(StrEnum):
    """What a gang waits for."""

    HELD = "held"
    """It is not considered: its annotations are wrong, its namespace has no grant, its last pods still stop."""
    STARTING = "starting"
    """Nothing: the next step starts it."""
    PREEMPTING = "preempting"
    """Gangs that make way for it."""
    NODES = "nodes"
    """A place on nodes, which are kept free for it or are to come."""
    QUOTA_OR_NODES = "quota or nodes"
    """What its queue has not left, or no nodes have."""


@dataclass(frozen=True, slots=True, kw_only=True)
class QuotaUse:
    """Of one resource in one flavor, in the units of the planner."""

    flavor: str
    resource: str
    quota: int
    """What the queue has by itself."""
    most: int
    """What it could use if nobody else used anything."""
    used: int
    borrowed: int


@dataclass(frozen=True, slots=True, kw_only=True)
class QueueOverview:
    """One queue."""

    name: str
    cohort: str | None
    stopped: bool
    quotas: Sequence[QuotaUse]
    share: float | None
    """Of its tree, by the tree's order: the smallest comes next. None: priorities decide."""
    running: int
    """Gangs."""
    waiting: Mapping[Wait, int]
    """Gangs, by what they wait for."""
    preempted: int
    """How many of these were stopped for another gang."""
    longest_seconds: float
    """How long the first of the waiting gangs has waited; 0 where none waits."""


def overview(seen: QueueState, plan: QueuePlan, now: datetime) -> Sequence[QueueOverview]:
    """Return every queue of the configuration, by name.

    Args:
        seen: the moment.
        plan: what was decided for it.
        now: the present.

    Raises:
        BadInput: the configuration has problems.
    """
    snapshot = QueueSnapshot(seen)
    waits = waits_of(seen, snapshot, plan)
    shares = snapshot.shares(())
    running = Counter(each.gang.queue for each in seen.running)
    found = []
    for name, queue in sorted(snapshot.queues.items()):
        node = snapshot.quotas.queues[name]
        mine = [gang for gang in seen.gangs if gang.queue == name]
        oldest = min((gang.since for gang in mine), default=now)
        measured = node.parent is not None and node.order is not Order.PRIORITY
        found.append(
            QueueOverview(
                name=name,
                cohort=queue.cohort,
                stopped=queue.stopped,
                quotas=[_use(node, i) for i in _counted(node)],
                share=shares[node.order].of(node)[1] if measured else None,
                running=running[name],
                waiting=Counter(waits[gang.uid] for gang in mine),
                preempted=sum(gang.preempted is not None for gang in mine),
                longest_seconds=max(0.0, (now - oldest).total_seconds()),
            )
        )
    return found


def waits_of(seen: QueueState, snapshot: QueueSnapshot, plan: QueuePlan) -> Mapping[str, Wait]:
    """Return what each waiting gang waits for, by uid."""
    decided: list[tuple[Wait, Gang]] = [(Wait.QUOTA_OR_NODES, gang) for gang in seen.gangs]
    decided += [(Wait.STARTING, each.gang) for each in plan.admitted]
    decided += [(Wait.PREEMPTING, each.gang) for each in plan.preempting]
    decided += [(Wait.NODES, each.gang) for each in plan.reserved]
    decided += [(Wait.NODES, each.gang) for each in plan.awaiting]
    decided += [
        (Wait.HELD, gang)
        for each in plan.waiting
        for gang in each.gangs
        if snapshot.why_held(gang) is not None
    ]
    return {gang.uid: wait for wait, gang in decided}


def _counted(node: QuotaNode) -> list[int]:
    """Return the numbers of what a queue has quota of, or uses though it has none any more."""
    return [i for i, fr in enumerate(node.frs) if fr in node.definition.quotas or node.usage[i] > 0]


def _use(node: QuotaNode, i: int) -> QuotaUse:
    flavor, resource = node.frs[i]
    return QuotaUse(
        flavor=flavor,
        resource=resource,
        quota=node.nominal[i],
        most=node.potential[i],
        used=node.usage[i],
        borrowed=max(0, node.usage[i] - node.nominal[i]),
    )
