"""The scenario of a drill as types: what stands in its file, with the defaults filled in.

Reading and checking is `reading.py`'s; here nothing can be wrong any more.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path

from plimsoll_testbed.model.nodegroups import Capacity, NodeGroupSpec
from plimsoll_testbed.scenario.problems import Place
from plimsoll_testbed.scenario.yamlfiles import Document


@dataclass(frozen=True, slots=True, kw_only=True)
class Selector:
    """Which nodes, or for a fault which node groups. Fields that are None match everything."""

    cluster: str | None = None
    group: str | None = None
    zone: str | None = None
    capacity: Capacity | None = None
    instance_type: str | None = None
    names: tuple[str, ...] | None = None
    count: int | None = None
    fraction: float | None = None

    def takes_group(self, cluster: str, group: NodeGroupSpec) -> bool:
        """Whether nodes of this group can match at all."""
        return (
            self.cluster in {None, cluster}
            and self.group in {None, group.name}
            and self.capacity in {None, group.capacity}
            and self.instance_type in {None, group.instance_type}
            and (self.zone is None or self.zone in group.zones)
        )

    def takes_node(self, cluster: str, group: NodeGroupSpec, *, name: str, zone: str) -> bool:
        """Whether this node matches, before `count` and `fraction` thin the matches."""
        return (
            self.takes_group(cluster, group)
            and self.zone in {None, zone}
            and (self.names is None or name in self.names)
        )

    def keeps(self, matches: int) -> int:
        """Return how many of so many matches are drawn: a fraction is rounded up."""
        if self.count is not None:
            return min(self.count, matches)
        if self.fraction is not None:
            # A float like 0.1 stands for the decimal that was written: 0.1 of 30 is 3, not 4.
            return min(matches, -int(-round(self.fraction * matches, 9) // 1))
        return matches


@dataclass(frozen=True, slots=True, kw_only=True)
class PodTimes:
    """How pods behave whose template says nothing."""

    startup: timedelta = timedelta(seconds=15)
    stop: timedelta = timedelta(seconds=3)


@dataclass(frozen=True, slots=True, kw_only=True)
class Autoscaler:
    """A plain cluster autoscaler."""

    scan: timedelta = timedelta(seconds=10)


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterSpec:
    """A cluster at the start."""

    name: str
    node_groups: tuple[NodeGroupSpec, ...]
    manifests: tuple[Path, ...]
    pods: PodTimes = field(default_factory=PodTimes)
    rivals: tuple[str, ...] = ()
    autoscaler: Autoscaler | None = None
    place: Place = field(compare=False)

    def group(self, name: str) -> NodeGroupSpec:
        """Return one of its groups by name."""
        return next(group for group in self.node_groups if group.name == name)


_GRACE_OF_KIND: Mapping[str, timedelta | None] = {
    "spot-interruption": timedelta(seconds=120),
    "capacity-reservation-interruption": timedelta(seconds=120),
    "lifecycle-terminate": timedelta(minutes=5),
    "health-scheduled-change": timedelta(hours=2),
    "rebalance-recommendation": None,
    "none": timedelta(0),
}
_ENDING_STATES = frozenset({"stopping", "stopped", "shutting-down", "terminated"})


@dataclass(frozen=True, slots=True, kw_only=True)
class NoticeEntry:
    """Notices about nodes."""

    at: timedelta
    notice: str
    nodes: Selector
    reclaim: timedelta | None = None
    state: str | None = None
    spread: timedelta = timedelta(0)
    place: Place = field(compare=False)

    @property
    def goes_after(self) -> timedelta | None:
        """From the notice to the moment the instance goes; None: it does not go."""
        if self.reclaim is not None:
            return self.reclaim
        if self.notice == "state-change":
            return timedelta(0) if self.state in _ENDING_STATES else None
        return _GRACE_OF_KIND[self.notice]

    @property
    def ends(self) -> timedelta:
        """When the last of its notices has come."""
        return self.at + self.spread


@dataclass(frozen=True, slots=True, kw_only=True)
class FaultEntry:
    """Something that is broken from `at` to `ends`."""

    at: timedelta
    fault: str
    lasts: timedelta
    cluster: str | None = None
    nodes: Selector = field(default_factory=Selector)
    latency: timedelta = timedelta(0)
    fraction: float = 1.0
    delay: timedelta = timedelta(seconds=1)
    function: str | None = None
    service: str | None = None
    place: Place = field(compare=False)

    @property
    def ends(self) -> timedelta:
        """When it works again."""
        return self.at + self.lasts


@dataclass(frozen=True, slots=True, kw_only=True)
class ScaleEntry:
    """The owner declares another count of replicas."""

    at: timedelta
    cluster: str
    kind: str
    namespace: str
    name: str
    replicas: int
    place: Place = field(compare=False)

    @property
    def ends(self) -> timedelta:
        """It is done at once."""
        return self.at


@dataclass(frozen=True, slots=True, kw_only=True)
class ApplyEntry:
    """The owner applies manifests."""

    at: timedelta
    cluster: str
    file: Path
    place: Place = field(compare=False)

    @property
    def ends(self) -> timedelta:
        """It is done at once."""
        return self.at


type Entry = NoticeEntry | FaultEntry | ScaleEntry | ApplyEntry


@dataclass(frozen=True, slots=True, kw_only=True)
class Bounds:
    """What must hold for a workload, or for the whole drill. None: not asked."""

    pods_killed: int | None = None
    pods_cut_short: int | None = None
    seconds_below_floor: float | None = None
    seconds_below_replicas: float | None = None
    seconds_at_zero: float | None = None
    ready_replica_seconds_lost: float | None = None
    min_ready: int | None = None
    """A minimum, and of workloads only; all others are maxima."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Expect:
    """What must hold when the responder is plimsoll."""

    totals: Bounds = field(default_factory=Bounds)
    cordoned_within: timedelta | None = None
    emptied_before_gone: bool = False
    settled: bool = False
    workloads: Mapping[str, Bounds] = field(default_factory=dict)
    """By `namespace/name`; `*` is every workload that is not named."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Latency:
    """How slow the simulated rig is."""

    notice: timedelta = timedelta(milliseconds=300)
    function: timedelta = timedelta(milliseconds=200)
    api: timedelta = timedelta(milliseconds=20)


@dataclass(frozen=True, slots=True, kw_only=True)
class Scenario:
    """One drill."""

    name: str
    description: str = ""
    seed: int = 0
    horizon: timedelta
    latency: Latency = field(default_factory=Latency)
    spot_price: float = 0.35
    """As a share of on-demand."""
    clusters: tuple[ClusterSpec, ...]
    timeline: tuple[Entry, ...] = ()
    """By time; entries of the same time in the order of the file."""
    expect: Expect | None = None
    file: Path
    document: Document = field(compare=False, repr=False)
    """The file as plain values, and the line of each."""

    def cluster(self, name: str) -> ClusterSpec:
        """Return one of its clusters by name."""
        return next(cluster for cluster in self.clusters if cluster.name == name)
