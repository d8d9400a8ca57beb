"""All pods of a gang that asks for it are told when the first of their nodes goes.

Most often they take one checkpoint together. A container reads it through the downward API.
https://kubernetes.io/docs/concepts/workloads/pods/downward-api/
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime

from plimsoll.domain.kubernetes import (
    PodDeadline,
    Ref,
    ThreatenedGang,
    class_of,
    deadlines_to_tell,
    is_told,
    queued_gang_of,
)
from plimsoll.domain.observation import WorkloadTimes
from plimsoll_batch.domain.jobs.gangs import Gang
from plimsoll_batch.domain.jobs.jobs import GangJobs


def plan_deadlines(
    gangs: Iterable[GangJobs],
    ends: Mapping[str, datetime],
    now: datetime,
    times: Mapping[Ref, WorkloadTimes],
) -> Sequence[PodDeadline[Gang]]:
    """Return what has to be written on pods now; what stands there already is not written again.

    Args:
        gangs: all of them.
        ends: what `reclaimed_at` says.
        now: the present.
        times: what was observed of `unstated_classes`, as far as it is known.
    """
    asking = (jobs for jobs in gangs if any(role.told for role in jobs.roles))
    return deadlines_to_tell((_threatened(jobs, ends, times) for jobs in asking), now)


def _threatened(
    jobs: GangJobs, ends: Mapping[str, datetime], times: Mapping[Ref, WorkloadTimes]
) -> ThreatenedGang[Gang]:
    first = _first_end(jobs, ends)
    return ThreatenedGang(
        gang=jobs.gang,
        pods=jobs.pods,
        deadline=first,
        stated=_stated(jobs),
        observed=None if first is None else _observed(jobs, times),
    )


def unstated_classes(gangs: Iterable[GangJobs], ends: Mapping[str, datetime]) -> Iterator[Ref]:
    """Yield the classes of the gangs that are to be told, and whose owners do not say how long a checkpoint takes."""
    for jobs in gangs:
        asks = any(role.told for role in jobs.roles) and not is_told(jobs.pods)
        if asks and not _stated(jobs) and _first_end(jobs, ends) is not None:
            yield from _class_of(jobs)


def _observed(jobs: GangJobs, times: Mapping[Ref, WorkloadTimes]) -> int | None:
    seen = (times[each].checkpoint_seconds for each in _class_of(jobs) if each in times)
    return max((seconds for seconds in seen if seconds is not None), default=None)


def _stated(jobs: GangJobs) -> int:
    return max((role.checkpoint_takes or 0 for role in jobs.roles), default=0)


def _first_end(jobs: GangJobs, ends: Mapping[str, datetime]) -> datetime | None:
    return min((at for pod in jobs.pods if (at := ends.get(pod.node or ""))), default=None)


def _class_of(jobs: GangJobs) -> frozenset[Ref]:
    """Return by what its pods are remembered: one class, if their labels agree."""
    return frozenset(class_of(gang) for pod in jobs.pods if (gang := queued_gang_of(pod)))
