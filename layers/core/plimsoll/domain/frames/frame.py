"""A storm at one instant, bounded, as plain data: what is shown, replayed and kept.

Seconds count from the first notice of the storm. *Ready floor* is what budgets and strategy demand of a workload
while it is disrupted; it is not the on-demand floor.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Final

MOST_WORKLOADS: Final = 200
MOST_NODES: Final = 100
MOST_PODS: Final = 60
MOST_GROUPS: Final = 20
MOST_LINES: Final = 40
MOST_TRACE: Final = 60
"""Points of one trace; of a longer one, every other point is left out."""
MOST_ACTS: Final = 3
LONGEST_WORDS: Final = 300
"""Characters of one sentence: refusals contain what AWS or a webhook says."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FrameCounts:
    """Pods that must move, each in one of four states, and what went wrong."""

    of: int = 0
    """How many pods must move: `safe`, `starting`, `no_node` and `not_begun` together."""
    safe: int = 0
    """A replacement is Ready."""
    starting: int = 0
    """A replacement has a node."""
    no_node: int = 0
    """A replacement waits for a node."""
    not_begun: int = 0
    at_risk: int = 0
    """Of them, how many reach their eviction deadline before any replacement has a node."""
    killed: int = 0
    """Pods that still ran when their instance was gone."""
    below_floor: int = 0
    """Workloads with fewer Ready pods than their ready floor, but some."""
    at_zero: int = 0
    """Workloads without a Ready pod."""


@dataclass(frozen=True, slots=True, kw_only=True)
class OperatorTask:
    """What the person who watches must do. With neither acts nor help on its way: nothing."""

    acts: tuple[str, ...] = ()
    """One to three, where only a person helps."""
    waiting: bool = False
    """Something is short, and help is on its way."""
    nodes_coming: int = 0
    next_at: float | None = None
    """When the next of these nodes is expected, as far as launches of its group tell."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkloadFrame:
    """One workload with pods that must move."""

    ref: str
    replicas: int
    floor: int
    """The ready floor."""
    ready: int
    lowest: int
    """The fewest Ready pods since the storm began."""
    going: int = 0
    """Of the Ready pods, how many stand on nodes that go."""
    of: int = 0
    safe: int = 0
    starting: int = 0
    no_node: int = 0
    stopping: int = 0
    at_risk: int = 0
    killed: int = 0
    deadline: float | None = None
    """The next eviction deadline of its pods."""
    way: str = ""
    """How its pods are replaced."""
    says: str = ""
    """What it waits for."""
    serves: bool = True
    """Whether its Ready pods count: not those of Jobs and bare pods."""
    trace: tuple[tuple[float, int], ...] = ()
    """(seconds, Ready pods) at each change."""

    @property
    def not_begun(self) -> int:
        """Pods that nothing replaces yet."""
        return self.of - self.safe - self.starting - self.no_node

    @property
    def at_zero(self) -> bool:
        """Whether none of its pods is Ready."""
        return self.serves and self.replicas > 0 and self.ready == 0

    @property
    def below_floor(self) -> bool:
        """Whether fewer are Ready than its ready floor, but some."""
        return self.serves and 0 < self.ready < self.floor

    @property
    def settled(self) -> bool:
        """Whether nothing of it is left to do or to look at."""
        in_order = self.safe >= self.of and not self.killed and not self.at_risk
        return in_order and not self.at_zero and not self.below_floor


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeFrame:
    """One node that goes."""

    name: str
    zone: str = ""
    type: str = ""
    noticed: float = 0.0
    deadline: float | None = None
    cordoned: float | None = None
    emptied: float | None = None
    gone: float | None = None
    had: int = 0
    """The most pods that had to leave."""
    left: int = 0
    killed: int = 0

    @property
    def empty(self) -> bool:
        """Whether no pod has to leave it any more."""
        return not self.left or self.gone is not None


@dataclass(frozen=True, slots=True, kw_only=True)
class PodFrame:
    """A pod that is at risk, or was killed."""

    name: str
    workload: str
    node: str
    killed: bool = False
    deadline: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupFrame:
    """A node group that was asked for nodes, or refused them."""

    name: str
    capacity: str
    asked: float | None = None
    """When the first were asked for."""
    add: int = 0
    ready: int = 0
    """Its nodes that came up since the storm began."""
    refused: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class LineFrame:
    """What was done at one time, in words."""

    seconds: float
    words: str


@dataclass(frozen=True, slots=True, kw_only=True)
class OthersFrame:
    """The workloads that are left out of a frame."""

    settled: int = 0
    moving: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Frame:
    """A storm of one cluster at one instant."""

    cluster: str
    storm: datetime
    """The first notice: with the cluster, the key of the storm."""
    latest: datetime
    """The last notice."""
    number: int
    at: datetime
    next_by: datetime | None = None
    """When the next frame comes at the latest; None: the storm is over."""
    mode: str = "act"
    """Of the cluster, as registered: in `observe` nobody acts."""
    deadline: float | None = None
    """When the first of the instances goes that still stand."""
    counts: FrameCounts
    task: OperatorTask
    full: tuple[str, ...] = ()
    """Node groups that have as many nodes as their owners allow."""
    workloads: tuple[WorkloadFrame, ...]
    """The worst first."""
    others: OthersFrame = OthersFrame()
    nodes: tuple[NodeFrame, ...]
    """Those that hold pods first, by deadline."""
    nodes_of: int
    """How many nodes go or went."""
    nodes_empty: int
    slowest: float | None = None
    """When the last of the empty nodes became so."""
    zones: tuple[str, ...] = ()
    pods: tuple[PodFrame, ...] = ()
    capacity: tuple[GroupFrame, ...] = ()
    lines: tuple[LineFrame, ...] = ()
    """The newest last."""
    trace: tuple[tuple[float, int, int], ...] = ()
    """(seconds, pods that are safe, pods that are safe or under way) at each change."""

    @property
    def over(self) -> bool:
        """Whether no node is interrupted any more."""
        return self.next_by is None

    @property
    def seconds(self) -> float:
        """How long after the first notice it was made."""
        return (self.at - self.storm).total_seconds()


def thinned[P](trace: tuple[P, ...], most: int = MOST_TRACE) -> tuple[P, ...]:
    """Return a trace without every other point where it is too long; its end stays."""
    return trace if len(trace) <= most else (*trace[:-1:2], trace[-1])
