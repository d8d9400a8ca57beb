"""What is measured of the queues of a cluster: how many gangs wait for what, and what became of them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Final, Literal

from plimsoll.domain.registry import OTHERS
from plimsoll_batch.domain.admission import QueuePlan, QueueSnapshot, QueueState
from plimsoll_batch.domain.jobs import Begin, JobAction, Suspend
from plimsoll_batch.domain.overview import waits_of
from plimsoll_batch.domain.quota import QueueConfiguration

LABELLED_QUEUES: Final = 20
"""How many queues of a cluster, the first by name, have metrics of their own: each costs as much as one."""


class QueueMetric(StrEnum):
    """The name of a metric of one queue."""

    GANGS_WAITING = "GangsWaiting"
    """Gangs that wait, by what they wait for (`reason`): once in each run of the planner."""
    GANGS_ADMITTED = "GangsAdmitted"
    """Gangs that the planner started."""
    GANGS_PREEMPTED = "GangsPreempted"
    """Gangs that the planner stopped for others."""
    ADMISSION_WAIT = "AdmissionWait"
    """Seconds that an admitted gang had waited since it was submitted or lost its place."""

    @property
    def unit(self) -> Literal["Count", "Seconds"]:
        """The unit, in CloudWatch's words."""
        return "Seconds" if self is QueueMetric.ADMISSION_WAIT else "Count"


@dataclass(frozen=True, slots=True, kw_only=True)
class QueueMeasure:
    """One value of a metric of a queue."""

    metric: QueueMetric
    queue: str
    value: float
    reason: str | None = None


def waiting_measures(seen: QueueState, plan: QueuePlan) -> Sequence[QueueMeasure]:
    """Return how many gangs of each queue wait for what; nothing of a queue where none waits.

    Raises:
        BadInput: the configuration has problems.
    """
    labels = _labels(seen.configuration)
    waits = waits_of(seen, QueueSnapshot(seen), plan)
    counts = Counter((labels.get(gang.queue, OTHERS), waits[gang.uid]) for gang in seen.gangs)
    return [
        QueueMeasure(metric=QueueMetric.GANGS_WAITING, queue=queue, value=number, reason=wait)
        for (queue, wait), number in sorted(counts.items())
    ]


def step_measures(
    done: Iterable[JobAction], configuration: QueueConfiguration, now: datetime
) -> Sequence[QueueMeasure]:
    """Return what steps that were carried out count for.

    Args:
        done: the steps.
        configuration: of the cluster.
        now: when they were decided.
    """
    labels = _labels(configuration)
    found: list[QueueMeasure] = []
    for step in done:
        gang = step.jobs.gang
        queue = labels.get(gang.queue, OTHERS)
        if isinstance(step, Begin):
            wait = max(0.0, (now - gang.since).total_seconds())
            found.append(QueueMeasure(metric=QueueMetric.GANGS_ADMITTED, queue=queue, value=1))
            found.append(QueueMeasure(metric=QueueMetric.ADMISSION_WAIT, queue=queue, value=wait))
        elif isinstance(step, Suspend) and step.stop.made_way:
            found.append(QueueMeasure(metric=QueueMetric.GANGS_PREEMPTED, queue=queue, value=1))
    return found


def _labels(configuration: QueueConfiguration) -> Mapping[str, str]:
    """Return the name that each queue has in metrics, as far as it has one of its own."""
    names = sorted(queue.name for queue in configuration.queues)
    return {name: name for name in names[:LABELLED_QUEUES]}
