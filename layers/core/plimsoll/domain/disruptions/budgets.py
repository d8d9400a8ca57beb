"""What workloads keep by their rollout settings and PodDisruptionBudgets, and what budgets let go in one plan."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping
from typing import Self

from plimsoll.domain.kubernetes import Budget, Pod, Ref, Workload, budget_keeps, ready_floor
from plimsoll.domain.observation import Observation, is_dead

ALONE = {"Pod", "Job"}
"""What has no pods that must serve side by side."""


class Allowance:
    """What budgets let go in one plan, pod by pod, of whichever workload: each eviction takes its part.

    https://kubernetes.io/docs/concepts/scheduling-eviction/api-eviction/
    """

    def __init__(self, seen: Observation, left: Mapping[Ref, int]) -> None:
        self._seen = seen
        self._left = Counter(left)

    @classmethod
    def of(cls, seen: Observation) -> Self:
        """Return what is left by the status of budgets, without dead pods that the API server still counts as Ready."""
        found = cls(seen, {budget.ref: budget.disruptions_allowed for budget in seen.budgets})
        for pod in seen.pods if seen.budgets else ():
            if pod.serving and is_dead(seen, pod):
                found.take(pod)
        return found

    def copy(self) -> Self:
        """Return the same, to try what would be let go."""
        return type(self)(self._seen, self._left)

    def take(self, pod: Pod) -> str | None:
        """Count the eviction of a pod, or say why its budgets refuse it."""
        why = self.why_not(pod)
        if why is None:
            self._left.subtract(budget.ref for budget in self._seen.budgets_of(pod))
        return why

    def why_not(self, pod: Pod) -> str | None:
        """Say why the budgets of a pod refuse its eviction, or None where they let it go."""
        covering = self._seen.budgets_of(pod)
        names = ", ".join(budget.ref.name for budget in covering)
        if len(covering) > 1:
            return f"the eviction API refuses pods that several budgets cover: {names}"
        if any(self._left[budget.ref] < 1 for budget in covering):
            return f"its PodDisruptionBudget {names} allows no disruption now"
        return None


def replicas_of(seen: Observation, ref: Ref) -> int:
    """Return how many pods a workload should have.

    Where nobody says it, one that left may not have been made anew yet.
    """
    workload = seen.workload.get(ref)
    if workload is not None:
        return workload.held_replicas
    pods = seen.of_workload.get(ref, ())
    return max(sum(not p.released for p in pods), seen.counts.get(ref, 0))


def kept_of(seen: Observation, ref: Ref, replicas: int) -> Mapping[Ref, int]:
    """Return how many of so many replicas of a workload each budget keeps. One that covers some of its pods keeps no others."""
    found = {}
    for budget in _budgets_of(seen, ref):
        covered = seen.covered[budget.ref]
        mine = _share(seen, ref, covered[ref], replicas)
        others = (_share(seen, o, n, replicas_of(seen, o)) for o, n in covered.items() if o != ref)
        found[budget.ref] = budget_keeps(budget, mine, expected=mine + sum(others))
    return found


def _budgets_of(seen: Observation, ref: Ref) -> Collection[Budget]:
    """Return the budgets that cover any pod of a workload: a namespace may have one for each of its workloads."""
    pods = seen.of_workload.get(ref, ())
    return {budget.ref: budget for pod in pods for budget in seen.budgets_of(pod)}.values()


def _share(seen: Observation, ref: Ref, covered: int, replicas: int) -> int:
    """Return how many replicas a budget covers that covers so many pods of a workload."""
    return replicas if covered == len(seen.of_workload[ref]) else min(covered, replicas)


def has_one_budget(seen: Observation, ref: Ref) -> bool:
    """Whether exactly one budget covers pods of a workload, and all of them; it may cover those of others too."""
    covering = [seen.covered[budget.ref][ref] for budget in _budgets_of(seen, ref)]
    return covering == [len(seen.of_workload.get(ref, ()))]


def floor_of(
    seen: Observation, ref: Ref, workload: Workload | None, replicas: int, keeps: int
) -> int:
    """Return the ready floor of a workload of which budgets keep so many pods."""
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
        one_budget=has_one_budget(seen, ref),
    )
