"""Queues that share quota: their configuration, the arithmetic of quotas, shares, order and preemption.

The semantics are those of Kueue's ClusterQueues and Cohorts: https://kueue.sigs.k8s.io/docs/concepts/
"""

from __future__ import annotations

from plimsoll_batch.domain.quota.admission_attempt import (
    Attempt,
    Holder,
    Victim,
    policy_of,
    queues_below,
)
from plimsoll_batch.domain.quota.cohorts import (
    Cohort,
    Flavor,
    Forest,
    Order,
    Preemption,
    Queue,
    QueueOrder,
    Quota,
    Reclaim,
    ResourceGroup,
    Strategy,
    WithinQueue,
    problems_of,
)
from plimsoll_batch.domain.quota.fair_sharing_order import Age, Candidate, Tournament, age_of
from plimsoll_batch.domain.quota.flavors import (
    Assignment,
    Options,
    RoleFlavors,
    Unassigned,
    assign,
    grouped,
    options_of,
    without_victims,
)
from plimsoll_batch.domain.quota.interruption_cost import costs_in_words, priced_queues
from plimsoll_batch.domain.quota.preemption import victims_of
from plimsoll_batch.domain.quota.quota_tree import Amounts, QuotaForest, QuotaNode
from plimsoll_batch.domain.quota.shares import (
    DominantResourceShare,
    Drf,
    HierarchicalDrf,
    Shares,
    WaterFilling,
)

__all__ = [
    "Age",
    "Amounts",
    "Assignment",
    "Attempt",
    "Candidate",
    "Cohort",
    "DominantResourceShare",
    "Drf",
    "Flavor",
    "Forest",
    "HierarchicalDrf",
    "Holder",
    "Options",
    "Order",
    "Preemption",
    "Queue",
    "QueueOrder",
    "Quota",
    "QuotaForest",
    "QuotaNode",
    "Reclaim",
    "ResourceGroup",
    "RoleFlavors",
    "Shares",
    "Strategy",
    "Tournament",
    "Unassigned",
    "Victim",
    "WaterFilling",
    "WithinQueue",
    "age_of",
    "assign",
    "costs_in_words",
    "grouped",
    "options_of",
    "policy_of",
    "priced_queues",
    "problems_of",
    "queues_below",
    "victims_of",
    "without_victims",
]
