"""The measure of shares of each order, for what runs and waits."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Mapping

from plimsoll_batch.domain.gangs import amounts_of
from plimsoll_batch.domain.queue_state import QueueState, Standing
from plimsoll_batch.domain.queues.forest import Order
from plimsoll_batch.domain.queues.quota import QuotaNode
from plimsoll_batch.domain.queues.shares import (
    DominantResourceShare,
    Drf,
    HierarchicalDrf,
    Shares,
    WaterFilling,
)


def measures_of(
    seen: QueueState, standing: Standing, blocked: Collection[QuotaNode]
) -> dict[Order, Shares]:
    """Return how each order but that by priority compares nodes.

    Args:
        seen: what runs and waits.
        standing: what runs, in the trees.
        blocked: queues of which nothing can be admitted at present; it may change.
    """
    quotas = standing.quotas
    found: dict[Order, Shares] = {
        Order.DOMINANT_RESOURCE_SHARE: DominantResourceShare(quotas.frs),
        Order.DRF: Drf(quotas.frs),
        Order.HIERARCHICAL_DRF: HierarchicalDrf(quotas.frs, blocked),
    }
    filled = [root for root in quotas.roots if root.order is Order.WATER_FILLING]
    if filled:
        requested = _requested(seen, standing)
        found[Order.WATER_FILLING] = WaterFilling(filled, quotas.frs, requested)
    return found


def _requested(seen: QueueState, standing: Standing) -> Mapping[QuotaNode, Mapping[str, int]]:
    found: dict[QuotaNode, dict[str, int]] = defaultdict(lambda: defaultdict(int))
    for node, holders in standing.holders.items():
        for holder in holders.values():
            for (_, resource), amount in holder.running.usage.items():
                found[node][resource] += amount
    for gang in seen.gangs:
        waits_in = standing.quotas.queues.get(gang.queue)
        if waits_in is not None:
            for role in gang.shape.roles:
                for name, amount in amounts_of(role.scheduling.requests, role.pods).items():
                    found[waits_in][name] += amount
    return found
