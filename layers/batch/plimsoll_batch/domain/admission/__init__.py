"""Which gangs start now: the plan of the queues, and what it asks to be done to Jobs."""

from __future__ import annotations

from plimsoll_batch.domain.admission.decisions import QueuePlan
from plimsoll_batch.domain.admission.fair_sharing_order import age_of
from plimsoll_batch.domain.admission.plan_actions import actions_of
from plimsoll_batch.domain.admission.planner import plan_queues
from plimsoll_batch.domain.admission.queue_state import QueueSnapshot, QueueState

__all__ = [
    "QueuePlan",
    "QueueSnapshot",
    "QueueState",
    "actions_of",
    "age_of",
    "plan_queues",
]
