"""How long the pods of a workload took to stop and to start, as far as that was seen."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class ObservedTime:
    """What the last pods of a workload took, in seconds."""

    pods: int
    """How many distinct pods were seen, by UID."""
    p95_seconds: float


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkloadTimes:
    """What was seen of one workload; None where nothing was."""

    stop: ObservedTime | None = None
    """From the request to stop until the pod was gone."""
    start: ObservedTime | None = None
    """From the node until Ready."""
