"""The ready floor: how many Ready replicas a workload keeps while its pods are moved.

Percentages follow Kubernetes: a Deployment's `maxUnavailable` rounds down and its `maxSurge` up,
and when both come to 0 one pod may be unavailable all the same; both fields of a
PodDisruptionBudget round up.

Sources:
    https://kubernetes.io/docs/concepts/workloads/controllers/deployment/#rolling-update-deployment
    https://kubernetes.io/docs/tasks/run-application/configure-pdb/#rounding-logic-when-specifying-percentages
"""

from __future__ import annotations

import re
from typing import Final

from plimsoll.domain.errors import BadInput
from plimsoll.domain.kubernetes.workloads import Budget

SMALLEST_QUORUM: Final = 3
"""Members of the smallest StatefulSet of which a majority is more than one and less than all."""
_PERCENTAGE = re.compile(r"([0-9]{1,9})%")


def resolve_count(value: int | str, total: int, *, round_up: bool) -> int:
    """Return an int-or-percentage as a number of pods out of `total`.

    Raises:
        BadInput: it is neither a number of pods nor a percentage.
    """
    if isinstance(value, int):
        if value < 0:
            raise BadInput(f"{value} is negative; write a number of pods, or a percentage like 25%")
        return value
    share = _PERCENTAGE.fullmatch(value)
    if share is None:
        raise BadInput(
            f"{value!r} is neither a number of pods nor a percentage; write for example 1 or 25%"
        )
    hundredths = int(share.group(1)) * total
    return -(-hundredths // 100) if round_up else hundredths // 100


def unavailable(replicas: int, max_unavailable: int | str, max_surge: int | str) -> int:
    """Return how many pods a rolling update of a Deployment may have missing, at most all."""
    missing = resolve_count(max_unavailable, replicas, round_up=False)
    if missing == 0 and resolve_count(max_surge, replicas, round_up=True) == 0:
        missing = 1
    return min(missing, replicas)


def budget_keeps(budget: Budget, replicas: int, *, expected: int) -> int:
    """Return how many of a workload's replicas a PodDisruptionBudget keeps available.

    A budget may cover several workloads. What it keeps of one of them is what must stand while all the others do;
    that not too many leave across them, `disruptions_allowed` says.

    Args:
        budget: the budget.
        replicas: of the workload, as far as the budget covers them.
        expected: the same of all workloads that it covers.
    """
    keeps = 0
    if budget.min_available is not None:
        keeps = resolve_count(budget.min_available, expected, round_up=True)
    elif budget.max_unavailable is not None:
        keeps = expected - resolve_count(budget.max_unavailable, expected, round_up=True)
    return max(0, min(keeps - (expected - replicas), replicas))


def quorum(kind: str, replicas: int) -> int:
    """Return how many members of a StatefulSet of three and more must be Ready: a majority; else 0."""
    return replicas // 2 + 1 if kind == "StatefulSet" and replicas >= SMALLEST_QUORUM else 0


def runs_twice(kind: str, replicas: int, strategy: str = "RollingUpdate") -> bool:
    """Whether a replacement may stand beside a workload's last pod.

    A single StatefulSet replica has one identity, and Recreate asks that old and new never meet.
    """
    if replicas != 1:
        return replicas > 1
    return kind != "StatefulSet" and not (kind == "Deployment" and strategy == "Recreate")


def ready_floor(  # noqa: PLR0913 - the facts it is made of
    kind: str,
    replicas: int,
    strategy: str = "RollingUpdate",
    max_unavailable: int | str = "25%",
    budget_keeps: int = 0,
    *,
    max_surge: int | str = "25%",
    one_budget: bool = False,
) -> int:
    """Return the ready floor of a workload.

    The surprise: it is 0 for a workload that cannot run twice, whatever its budget says, and at
    least 1 for any other that is not scaled to 0. A bare ReplicaSet has no rollout settings: it may
    miss one pod, like a StatefulSet; a Recreate rollout lets all pods go at once. A StatefulSet with a budget may
    miss as many as that allows, down to a majority.

    Args:
        kind: Deployment, Rollout, ReplicaSet or StatefulSet; anything else has no floor.
        replicas: what its owner declared, not what somebody raised it to for a while.
        strategy: the type of its update strategy.
        max_unavailable: of a Deployment's rolling update.
        budget_keeps: what its PodDisruptionBudgets keep: see the function of that name.
        max_surge: of a Deployment's rolling update; it matters only where both come to 0.
        one_budget: whether exactly one budget covers its pods, and all of them.
    """
    if replicas < 1 or not runs_twice(kind, replicas, strategy):
        return 0
    match kind:
        case "Deployment" if strategy == "Recreate":
            missing = replicas
        case "Deployment" | "Rollout":
            missing = unavailable(replicas, max_unavailable, max_surge)
        case "StatefulSet" if one_budget:
            missing = replicas - quorum(kind, replicas)
        case "StatefulSet" | "ReplicaSet":
            missing = 1
        case _:
            return 0
    return max(1, replicas - missing, min(budget_keeps, replicas))
