"""What the service advises the owner of a cluster to do, and what became of it."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Final, Literal

from msgspec import Meta, Struct

from plimsoll_service.wire.documents import MOST_COUNT, Count, Text, Time
from plimsoll_service.wire.names import (
    ContainerName,
    KindName,
    LabelValue,
    MaybeNamespace,
    ObjectName,
    Uid,
    Word,
)
from plimsoll_service.wire.pages import Page

type Kind = Literal[
    "consolidate-node",
    "right-size",
    "instance-mix",
    "allow-spot",
    "orphan-volume",
    "idle-load-balancer",
]
type State = Literal["open", "accepted", "done", "refused", "dismissed", "withdrawn"]
"""`accepted`: an instruction is made of it, or its owner carries it out. `refused`: its executor did not do
it. `dismissed`: somebody does not want it until a time. `withdrawn`: it is not advised any more."""
MOST_WORDS: Final = 4096
type Words = Annotated[str, Meta(max_length=MOST_WORDS)]
type Difference = Annotated[int, Meta(ge=-MOST_COUNT, le=MOST_COUNT)]


class Part(Struct, frozen=True, kw_only=True):
    """Part of the advice."""


class About(Part, frozen=True, kw_only=True):
    """The object that a recommendation is about."""

    kind: KindName
    namespace: MaybeNamespace = ""
    name: ObjectName
    uid: Uid


class ContainerRequests(Part, frozen=True, kw_only=True):
    """The requests that right-sizing advises for one container."""

    name: ContainerName
    sidecar: bool = False
    """It stands among the init containers, with restartPolicy Always."""
    cpu_m: Count
    memory: Count


class DismissRequest(Part, frozen=True, kw_only=True):
    """Why and until when somebody does not want a recommendation."""

    reason: Annotated[str, Meta(min_length=1, max_length=1024)]
    until: Time
    """At most 400 days ahead."""


class Dismissal(DismissRequest, frozen=True, kw_only=True):
    """A dismissal. It ends at `until`, or when somebody cancels it."""

    by: Text
    at: datetime


class Frees(Part, frozen=True, kw_only=True):
    """The part of the bill and of the requests that ends once a recommendation is carried out."""

    instance: LabelValue = ""
    """The type of the node that goes; empty: no single node does."""
    spot: bool = False
    volume: Word = ""
    """The type of the EBS volume that goes."""
    volume_bytes: Count = 0
    load_balancers: Count = 0
    cpu_m: Difference = 0
    """Requests that go: of pods that end with their node, or that right-sizing takes from all replicas. Below 0
    where right-sizing asks for more."""
    memory: Difference = 0


class Recommendation(Part, frozen=True, kw_only=True):
    """One thing to do."""

    id: Text
    """Made of what it is about: the same advice has the same id as long as it stands."""
    kind: Kind
    about: About
    reason: Words
    monthly: float
    """Dollars that it saves each month; below 0 where safety costs something."""
    executable: bool = False
    """Whether accepting it makes an instruction; else its owner carries it out."""
    patch: Words = ""
    """What the owner commits, or the command that does it."""
    containers: tuple[ContainerRequests, ...] = ()
    """Those whose requests right-sizing changes."""
    cpu_m: Count = 0
    """Of advice of an older version: what it asked for, of one pod."""
    memory: Count = 0
    state: State = "open"
    version: Count = 1
    """Counts what changed but for decisions: a decision names the version that was seen."""
    change: Words = ""
    """What the newest version changed."""
    accepted_by: Annotated[str, Meta(max_length=256)] = ""
    """Who accepted it; kept when it is done or refused. Empty: nobody, or that was cancelled."""
    accepted_at: datetime | None = None
    dismissed: Dismissal | None = None
    decided: Annotated[str, Meta(max_length=512)] = ""
    """The last decision: action, id of the person, version. The same once more changes nothing."""
    since: datetime
    """When it was first seen."""
    changed_at: datetime
    """When its state last changed."""
    note: Words = ""
    """What its executor said, or why it changed."""
    instruction: Count = 0
    """The number of the instruction that was made of it; 0: none yet."""
    measurable: bool = True
    """Whether the cluster shows that it was saved. Else only the bill does, and nothing is measured."""
    frees: Frees | None = None
    """None: advice of an older version."""
    seen_at: datetime | None = None
    """When the cluster first showed that it came true; None: it does not, or not any more."""
    measured: float | None = None
    """Always null, for older clients. `savings/history` says what was saved."""


class InstanceRow(Part, frozen=True, kw_only=True):
    """The instances of one type and capacity."""

    type: str
    capacity: str
    count: int
    monthly: float


class Configuration(Part, frozen=True, kw_only=True):
    """The nodes of a cluster, as they are or as they could be."""

    nodes: int
    spot: int
    """How many of them are spot."""
    vcpus: int
    memory: int
    """Bytes that pods can have."""
    monthly: float
    instances: tuple[InstanceRow, ...]


class Advice(Part, frozen=True, kw_only=True):
    """A cluster as it is, and as it could be."""

    cluster_id: Text
    taken_at: datetime
    """When the snapshot was taken that this is made of."""
    prices: Words
    """Whose prices, and of when."""
    today: Configuration
    optimised: Configuration
    """For the same pods."""
    resized: Configuration | None = None
    """For the same pods with the requests that are advised; None: none are."""
    gap: float
    """How far at most `optimised` is above the optimum under the same rules, as a share of it."""
    kept: dict[str, str]
    """Name of a node that stays what it is in `optimised` -> why."""
    left: dict[str, str] = {}
    """Name of a workload whose requests stay as they are -> why."""
    left_out: int = 0
    """More such workloads than `left` has room for."""
    unpriced: tuple[str, ...] = ()
    """Instance types whose price is not known: their nodes count as costing nothing."""
    unreached: tuple[Kind, ...] = ()
    """What the time did not suffice for: earlier advice of these kinds stands."""


class Recommendations(Part, frozen=True, kw_only=True):
    """Those of one cluster."""

    recommendations: tuple[Recommendation, ...]
    left_out: int = 0
    """Open ones that are not kept, because there are too many: those that save least."""


class RecommendationPage(Page, frozen=True, kw_only=True):
    """A page of the recommendations of one cluster, the one that saves most first."""

    items: tuple[Recommendation, ...]
    counts: dict[State, Count]
    """State -> how many of all that pass the filters."""
    recommendations: tuple[Recommendation, ...] = ()
    """For clients of version 0.2 and before: all of them, given only if the request names neither `limit` nor `after`."""
    left_out: Count = 0
    """Open ones that are not kept, because there are too many: those that save least."""
