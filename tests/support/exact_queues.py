"""What is possible at all, proven by HiGHS: what the heuristics of the queues are measured against."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import highspy

from plimsoll_batch.domain.jobs.gangs import Gang
from plimsoll_batch.domain.quota.cohorts import QueueConfiguration, Quota
from tests.support.queued import DEFAULT, GPU


def size_of(gang: Gang) -> int:
    """Return its GPUs."""
    return sum(
        dict(role.scheduling.requests.extended).get(GPU, 0) * role.pods for role in gang.shape.roles
    )


def most_work(configuration: QueueConfiguration, gangs: Sequence[Gang]) -> int:
    """Return the most GPUs that gangs can use at once in one flat cohort, in whatever order."""
    solver = _solver()
    starts = {gang.uid: solver.addBinary(obj=-size_of(gang)) for gang in gangs}
    seen, shared = [], 0
    for queue in configuration.queues:
        quota: Quota = queue.quotas[DEFAULT, GPU]
        local = 0 if quota.lending_limit is None else max(0, quota.nominal - quota.lending_limit)
        used = sum(
            (size_of(gang) * starts[gang.uid] for gang in gangs if gang.queue == queue.name),
            start=0 * solver.addVariable(),
        )
        if quota.borrowing_limit is not None:
            solver.addConstr(used <= quota.nominal + quota.borrowing_limit)
        above = solver.addVariable(lb=0)
        solver.addConstr(above >= used - local)
        seen.append(above)
        shared += quota.nominal - local
    solver.addConstr(sum(seen) <= shared)
    solver.run()
    return round(-float(solver.getObjectiveValue()))


def least_stopped(sizes: Mapping[str, int], needed: int) -> int:
    """Return the fewest GPUs of running gangs that have to stop so that so many are free."""
    solver = _solver()
    stops = {name: solver.addBinary(obj=size) for name, size in sizes.items()}
    solver.addConstr(sum(size * stops[name] for name, size in sizes.items()) >= needed)
    solver.run()
    return round(float(solver.getObjectiveValue()))


def fits(pods: Sequence[int], nodes: Sequence[int]) -> bool:
    """Whether pods with so many GPUs each fit on nodes with so many."""
    solver = _solver()
    places = [[solver.addBinary() for _ in nodes] for _ in pods]
    for row in places:
        solver.addConstr(sum(row) == 1)
    for index, whole in enumerate(nodes):
        used = sum(size * row[index] for size, row in zip(pods, places, strict=True))
        solver.addConstr(used <= whole)
    solver.run()
    return bool(solver.getModelStatus() == highspy.HighsModelStatus.kOptimal)


def _solver() -> highspy.Highs:
    solver = highspy.Highs()
    solver.setOptionValue("output_flag", False)  # noqa: FBT003 - as it is called
    return solver
