"""What one observation of a cluster found: the only input of a plan besides the time."""

from __future__ import annotations

from plimsoll.domain.observation.external_drains import DRAIN, why_drained
from plimsoll.domain.observation.interrupted_nodes import (
    STAYS_PUT,
    InterruptedNodes,
    is_dead,
    is_empty,
    is_gone,
    leaves,
)
from plimsoll.domain.observation.node_index import (
    INDEX_REFRESH,
    LONGEST_LULL,
    by_instance,
    entries_of,
    resynced_lately,
    to_describe,
    to_write,
    witnesses,
)
from plimsoll.domain.observation.observation import Observation, ShiftedZone
from plimsoll.domain.observation.observed_times import (
    LONGEST_START,
    MOST_SAMPLES,
    TIMES_KEPT,
    Count,
    ObservedTime,
    Sample,
    Samples,
    WorkloadTimes,
    chosen_workloads,
    start_samples,
    times_are_kept,
)
from plimsoll.domain.observation.pod_endings import UNNOTICED, Endings

__all__ = [
    "DRAIN",
    "INDEX_REFRESH",
    "LONGEST_LULL",
    "LONGEST_START",
    "MOST_SAMPLES",
    "STAYS_PUT",
    "TIMES_KEPT",
    "UNNOTICED",
    "Count",
    "Endings",
    "InterruptedNodes",
    "Observation",
    "ObservedTime",
    "Sample",
    "Samples",
    "ShiftedZone",
    "WorkloadTimes",
    "by_instance",
    "chosen_workloads",
    "entries_of",
    "is_dead",
    "is_empty",
    "is_gone",
    "leaves",
    "resynced_lately",
    "start_samples",
    "times_are_kept",
    "to_describe",
    "to_write",
    "why_drained",
    "witnesses",
]
