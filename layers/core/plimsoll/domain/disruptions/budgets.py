"""The ready floor that a workload keeps, by its rollout settings and by its PodDisruptionBudgets."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

from plimsoll.domain.kubernetes import Budget, Ref, Workload, budget_keeps, ready_floor

ALONE = {"Pod", "Job"}
"""What has no pods that must serve side by side."""


def floor_of(
    ref: Ref,
    workload: Workload | None,
    covering: Mapping[str, tuple[Budget, ...]],
    pods: int,
    replicas: int,
) -> int:
    """Return the ready floor. A budget that covers some of the pods keeps no others."""
    budgets = {b.ref: b for found in covering.values() for b in found}
    covered = Counter(b.ref for found in covering.values() for b in found)
    keeps = max(
        (
            budget_keeps(
                replicas if covered[budget.ref] == pods else min(covered[budget.ref], replicas),
                min_available=budget.min_available,
                max_unavailable=budget.max_unavailable,
            )
            for budget in budgets.values()
        ),
        default=0,
    )
    if workload is None:
        # How many its controller wants is not known: what there is must do, but for one.
        return min(keeps if ref.kind in ALONE else max(keeps, replicas - 1), replicas)
    return ready_floor(
        ref.kind,
        replicas,
        workload.strategy,
        workload.max_unavailable,
        keeps,
        max_surge=workload.max_surge,
    )
