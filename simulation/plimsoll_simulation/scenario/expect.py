"""Expectations that make a drill a test."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from plimsoll_simulation.declared import Declared
from plimsoll_simulation.durations import Duration

type Whole = Annotated[int, Field(ge=0)]
type Amount = Annotated[float, Field(ge=0)]


class Bounds(Declared):
    """Expectations of a workload, or of the whole drill: maxima, as far as they are given."""

    pods_killed: Whole | None = None
    """At most this many pods still running when their instance vanished."""
    pods_cut_short: Whole | None = None
    """At most this many pods that got SIGKILL early because the responder shortened their grace period."""
    seconds_below_floor: Amount | None = None
    """At most this many seconds below the ready floor."""
    seconds_below_quorum: Amount | None = None
    """At most this many seconds below quorum: of a StatefulSet of three and more, fewer than replicas // 2 + 1 Ready."""
    seconds_below_replicas: Amount | None = None
    """At most this many seconds with fewer Ready pods than replicas."""
    seconds_at_zero: Amount | None = None
    """At most this many seconds with no Ready pod at all."""
    ready_replica_seconds_lost: Amount | None = None
    """At most this many ready-replica seconds lost: the shortfall of Ready pods, summed over time."""


class WorkloadBounds(Bounds):
    """Expectations of a workload."""

    min_ready: Whole | None = None
    """At least this many Ready pods at every moment."""
    on_demand_ready: Whole | None = None
    """At least this many Ready pods on on-demand nodes at every moment."""
    spot_ready: Whole | None = None
    """At least this many Ready pods on spot nodes in the end; until then the drill goes on, up to its horizon."""


type WorkloadName = Annotated[
    str,
    Field(pattern=r"^(\*|[a-z0-9][-a-z0-9]*/[a-z0-9][-a-z0-9.]*)$", title='namespace/name, or "*"'),
]


class Expect(Bounds):
    """Expectations of the responder plimsoll. They make the drill a test."""

    cordoned_within: Duration | None = None
    """The slowest cordon after a notice that has a deadline."""
    emptied_before_gone: bool = False
    """true: every instance that got a notice and went was empty by then. false asks nothing."""
    settled: bool = False
    """true: the drill came to rest before its horizon. false asks nothing."""
    workloads: dict[WorkloadName, WorkloadBounds] = Field(default_factory=dict)
    """By namespace/name; "*" stands for every workload that is not named."""
