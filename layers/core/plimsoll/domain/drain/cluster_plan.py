"""The plan of a cluster, and what it was made from."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime

from plimsoll.domain.actions import Plan
from plimsoll.domain.disruptions import WorkloadDisruption
from plimsoll.domain.observation import Observation


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterPlan(Plan):
    """A plan with its observation and disruptions: at 500 nodes these take seconds to compute again."""

    at: datetime = field(compare=False)
    """The time of the observation."""
    seen: Observation = field(compare=False, repr=False)
    disruptions: tuple[WorkloadDisruption, ...] = field(compare=False, repr=False)
