"""Queues that share quota: their configuration, the arithmetic of quotas, shares, order and preemption.

The semantics are those of Kueue's ClusterQueues and Cohorts: https://kueue.sigs.k8s.io/docs/concepts/
"""

from __future__ import annotations

from plimsoll_batch.domain.quota.access import (
    Grants,
    counted,
    granted_by,
    why_denied,
    with_access,
)
from plimsoll_batch.domain.quota.admission_attempt import Attempt, Holder, Victim, queues_below
from plimsoll_batch.domain.quota.amounts import amount_text
from plimsoll_batch.domain.quota.cohorts import (
    Cohort,
    Flavor,
    Order,
    Preemption,
    Queue,
    QueueConfiguration,
    QueueOrder,
    Quota,
    Reclaim,
    ResourceGroup,
    Strategy,
    WithinQueue,
    problems_of,
    twice,
)
from plimsoll_batch.domain.quota.flavors import (
    Assignment,
    Options,
    RoleFlavors,
    Unassigned,
    assign,
    assignments,
    costs_in_words,
    grouped,
    options_of,
    priced_queues,
)
from plimsoll_batch.domain.quota.preemption import victims_of
from plimsoll_batch.domain.quota.quota_tree import Amounts, QuotaNode, QuotaTrees
from plimsoll_batch.domain.quota.selector_keys import with_equal_keys
from plimsoll_batch.domain.quota.shares import (
    DominantResourceShare,
    Drf,
    HierarchicalDrf,
    Shares,
    WaterFilling,
)

__all__ = [
    "Amounts",
    "Assignment",
    "Attempt",
    "Cohort",
    "DominantResourceShare",
    "Drf",
    "Flavor",
    "Grants",
    "HierarchicalDrf",
    "Holder",
    "Options",
    "Order",
    "Preemption",
    "Queue",
    "QueueConfiguration",
    "QueueOrder",
    "Quota",
    "QuotaNode",
    "QuotaTrees",
    "Reclaim",
    "ResourceGroup",
    "RoleFlavors",
    "Shares",
    "Strategy",
    "Unassigned",
    "Victim",
    "WaterFilling",
    "WithinQueue",
    "amount_text",
    "assign",
    "assignments",
    "costs_in_words",
    "counted",
    "granted_by",
    "grouped",
    "options_of",
    "priced_queues",
    "problems_of",
    "queues_below",
    "twice",
    "victims_of",
    "why_denied",
    "with_access",
    "with_equal_keys",
]
