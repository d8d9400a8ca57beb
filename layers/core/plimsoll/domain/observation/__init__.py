"""What one observation of a cluster found: the only input of a plan besides the time."""

from __future__ import annotations

from plimsoll.domain.observation.external_drains import DRAIN, why_drained
from plimsoll.domain.observation.interrupted_nodes import (
    InterruptedNodes,
    is_dead,
    is_empty,
    is_gone,
    leaves,
)
from plimsoll.domain.observation.node_index import (
    LULL,
    REFRESH,
    by_instance,
    entries_of,
    resynced_lately,
    to_describe,
    to_write,
    witnesses,
)
from plimsoll.domain.observation.observation import Observation, ShiftedZone
from plimsoll.domain.observation.observed_times import (
    KEPT,
    LAST,
    LONGEST_START,
    ObservedTime,
    Sample,
    Samples,
    WorkloadTimes,
    chosen,
    remembered,
    starts,
)
from plimsoll.domain.observation.pod_endings import Endings

__all__ = [
    "DRAIN",
    "KEPT",
    "LAST",
    "LONGEST_START",
    "LULL",
    "REFRESH",
    "Endings",
    "InterruptedNodes",
    "Observation",
    "ObservedTime",
    "Sample",
    "Samples",
    "ShiftedZone",
    "WorkloadTimes",
    "by_instance",
    "chosen",
    "entries_of",
    "is_dead",
    "is_empty",
    "is_gone",
    "leaves",
    "remembered",
    "resynced_lately",
    "starts",
    "to_describe",
    "to_write",
    "why_drained",
    "witnesses",
]
