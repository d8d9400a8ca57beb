"""The scenario of a drill: what its file may say, what each field means, and what it may not contradict.

The models are types, checks and reference at once: `validation.py` reads a file by them, and
`reference.py` makes the tables of the page and the JSON Schema from them.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from datetime import timedelta
from pathlib import Path
from typing import Annotated, Any, Final, Literal, override

from pydantic import (
    AfterValidator,
    BeforeValidator,
    Discriminator,
    Field,
    Tag,
    ValidationInfo,
    WithJsonSchema,
)
from pydantic.json_schema import SkipJsonSchema

from plimsoll_testbed.model.declared import (
    Contradiction,
    Declared,
    FieldPath,
    Label,
    Name,
    Word,
    repeated,
)
from plimsoll_testbed.model.durations import Duration, words
from plimsoll_testbed.model.machines import Hook
from plimsoll_testbed.model.nodegroups import Capacity, NodeGroupSpec, each_once
from plimsoll_testbed.scenario.faults import FAULTS, FaultName
from plimsoll_testbed.scenario.problems import Place, listed, rename, shown
from plimsoll_testbed.scenario.yamlfiles import Document

MAX_HORIZON: Final = timedelta(hours=24)
MAX_PATH: Final = 4096

type Whole = Annotated[int, Field(ge=0)]
type Amount = Annotated[float, Field(ge=0)]
type Share = Annotated[float, Field(gt=0, le=1)]


def _relative(value: Any, info: ValidationInfo) -> Any:
    """Read a path, which is relative to the folder of the scenario: the context of validation."""
    if isinstance(value, str) and 0 < len(value) <= MAX_PATH:
        return (info.context or Path()) / value
    return value


type File = Annotated[
    Path,
    BeforeValidator(_relative),
    WithJsonSchema({"type": "string", "minLength": 1, "maxLength": MAX_PATH}),
]


class Latency(Declared):
    """How slow the simulated rig is."""

    notice: Duration = timedelta(milliseconds=300)
    """From the event to the start of the function; default 300ms."""
    function: Duration = timedelta(milliseconds=200)
    """From the start of a function to its first call; default 200ms."""
    api: Duration = timedelta(milliseconds=20)
    """One API call; default 20ms."""


class Prices(Declared):
    """Prices for the cost figure."""

    spot: Share = 0.35
    """The spot price as a share of on-demand; default 0.35."""


class PodTimes(Declared):
    """How pods behave. A pod template overrides it by the annotations drill.plimsoll.dev/startup, drill.plimsoll.dev/stop and drill.plimsoll.dev/never-ready; drill.plimsoll.dev/run lets the pods of a Job finish."""

    startup: Duration = timedelta(seconds=15)
    """From bound to Ready; default 15s."""
    stop: Duration = timedelta(seconds=3)
    """From SIGTERM to exit; default 3s. Longer than the grace period means SIGKILL at its end."""


class Autoscaler(Declared):
    """A plain cluster autoscaler that grows on-demand groups for Pending pods, whoever responds; leave it out for none."""

    scan: Duration = timedelta(seconds=10)
    """How often it looks for Pending pods; default 10s."""

    @override
    def contradictions(self) -> Iterator[Contradiction]:
        if self.scan < timedelta(seconds=1):
            yield Contradiction(
                path=("scan",),
                found=words(self.scan),
                allowed="at least 1s",
                cure="Write 10s, the usual time",
            )


class Placed(Declared):
    """What a message about a running drill names by its place in the file."""

    place: SkipJsonSchema[Place] = Place(file="")


class ClusterSpec(Placed):
    """A cluster."""

    name: Label
    """Its name, once in a scenario."""
    node_groups: Annotated[tuple[NodeGroupSpec, ...], Field(min_length=1)]
    """Its node groups."""
    manifests: tuple[File, ...]
    """Files of ordinary Kubernetes manifests, relative to the scenario."""
    pods: PodTimes = PodTimes()
    rivals: Annotated[
        tuple[Literal["karpenter", "managed-node-group", "nth", "hpa", "gitops", "operator"], ...],
        Field(json_schema_extra={"uniqueItems": True}),
        AfterValidator(each_once),
    ] = ()
    """Other programs that act in the cluster; default none. hpa: autoscalers follow their CPU target, every 15 s, by the share of its request that each pod uses (annotation drill.plimsoll.dev/usage, default 10%); gitops: every minute it sets workloads, budgets and autoscalers back to what is declared, but for a count that an autoscaler holds; operator: every 5 s it sets back what has a custom resource as controlling owner, and makes Pods of such an owner anew under their names."""
    autoscaler: Autoscaler | None = None

    def group(self, name: str) -> NodeGroupSpec:
        """Return one of its groups by name."""
        return next(group for group in self.node_groups if group.name == name)

    @override
    def contradictions(self) -> Iterator[Contradiction]:
        yield from repeated("nodeGroups", [group.name for group in self.node_groups], "node group")


class GroupSelector(Declared, json_schema_extra={"minProperties": 1}):
    """Which node groups a fault is about; without it, all of them."""

    cluster: Label | None = None
    """The cluster meant; without it, all clusters."""
    group: Label | None = None
    """The node group meant."""
    zone: Word | None = None
    """The availability zone meant."""
    capacity: Capacity | None = None
    """The capacity type meant."""
    instance_type: Word | None = None
    """The instance type meant."""

    def takes_group(self, cluster: str, group: NodeGroupSpec) -> bool:
        """Whether nodes of this group can match at all."""
        return (
            self.cluster in {None, cluster}
            and self.group in {None, group.name}
            and self.capacity in {None, group.capacity}
            and self.instance_type in {None, group.instance_type}
            and (self.zone is None or self.zone in group.zones)
        )

    def mismatches(self, clusters: Sequence[ClusterSpec]) -> Iterator[Contradiction]:
        """Yield what it selects that none of these clusters has."""
        if self.cluster is not None and all(self.cluster != c.name for c in clusters):
            yield _unknown_cluster(self.cluster, clusters)
            return
        groups = [(c, g) for c in clusters if self.cluster in {None, c.name} for g in c.node_groups]
        wanted = (
            ("group", "node group", self.group, [g.name for _, g in groups]),
            ("zone", "zone", self.zone, [zone for _, g in groups for zone in g.zones]),
            ("instanceType", "instance type", self.instance_type,
             [g.instance_type for _, g in groups]),
        )  # fmt: skip
        unknown = [
            _unknown((field,), what, name, known)
            for field, what, name, known in wanted
            if name is not None and name not in known
        ]
        yield from unknown
        if not unknown and not any(self.takes_group(c.name, g) for c, g in groups):
            selected = self.model_dump(by_alias=True, exclude_none=True)
            yield Contradiction(
                path=(),
                found=f"{shown(selected)}, which no node group matches",
                allowed="a selection that matches at least one node group",
                cure="Loosen it",
            )

    @override
    def contradictions(self) -> Iterator[Contradiction]:
        if not self.model_fields_set:
            yield Contradiction(
                path=(), found="an empty mapping", allowed="at least 1 field", cure="Name one"
            )


class Selector(GroupSelector, json_schema_extra={"minProperties": 1}):
    """Which nodes: all that match every field given, thinned by count or fraction."""

    names: (
        Annotated[
            tuple[Word, ...],
            Field(min_length=1, json_schema_extra={"uniqueItems": True}),
            AfterValidator(each_once),
        ]
        | None
    ) = None
    """Nodes with these names."""
    count: Annotated[int, Field(ge=1)] | None = None
    """Only this many of them, drawn by the seed."""
    fraction: Share | None = None
    """Only this share of them, drawn by the seed and rounded up."""

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

    @override
    def contradictions(self) -> Iterator[Contradiction]:
        yield from super().contradictions()
        if self.count is not None and self.fraction is not None:
            yield Contradiction(
                path=("fraction",),
                found="count and fraction together",
                allowed="one of the two",
                cure="Remove one",
            )


class Timed(Placed):
    """What every entry of the timeline has."""

    at: Duration
    """When, counted from time 0: the moment when every workload is first fully Ready."""

    @property
    def ends(self) -> timedelta:
        """When it is over; most entries are done at once."""
        return self.at

    def over(self, elapsed: timedelta) -> bool:
        """Whether it was played by now, counted from time 0, and is over."""
        return self.at < elapsed and self.ends <= elapsed

    @abstractmethod
    def mismatches(self, clusters: Sequence[ClusterSpec]) -> Iterator[Contradiction]:
        """Yield what it names that none of these clusters has."""


_HOOK_TIMEOUT: Final = timedelta(minutes=5)
_GRACE_OF_KIND: Final[Mapping[str, timedelta | None]] = {
    "spot-interruption": timedelta(seconds=120),
    "capacity-reservation-interruption": timedelta(seconds=120),
    "health-scheduled-change": timedelta(hours=2),
    "rebalance-recommendation": None,
    "none": timedelta(0),
}
_ENDING_STATES: Final = frozenset({"stopping", "stopped", "shutting-down", "terminated"})


class NoticeEntry(Timed):
    """A notice about the nodes selected."""

    notice: Literal[
        "spot-interruption",
        "rebalance-recommendation",
        "lifecycle-terminate",
        "health-scheduled-change",
        "capacity-reservation-interruption",
        "state-change",
        "none",
    ]
    """The kind of notice. spot-interruption and capacity-reservation-interruption: the instance goes 120 s later; rebalance-recommendation: it does not go unless reclaim is given; lifecycle-terminate: a hook that times out after 5m; health-scheduled-change: it goes after 2h; state-change: the new state is in state; none: the instance goes without a word, after reclaim."""
    nodes: Selector
    reclaim: Duration | None = None
    """From the notice to the moment the instance goes, instead of the usual time of its kind."""
    state: (
        Literal["pending", "running", "stopping", "stopped", "shutting-down", "terminated"] | None
    ) = None
    """For state-change: the instance's new state. pending and running do not end it; the others do at once, or after reclaim."""
    by_owner: bool = False
    """For state-change: an owner ended it, as EC2's state reason says, and its group wants one instance less; default false."""
    other_hook: Duration | None = None
    """For lifecycle-terminate: the timeout of a second lifecycle hook, of somebody else, that nobody completes."""
    returns: Duration | None = None
    """For nodes of static groups: how long after its end the instance is launched again under its id, as after a stop or a hibernation. A group that can grow replaces it."""
    spread: Duration = timedelta(0)
    """Spaces the notices evenly over this time; without it they come in the same instant."""

    @property
    def hooks(self) -> Sequence[Hook]:
        """The lifecycle hooks that hold the instance."""
        if self.notice != "lifecycle-terminate":
            return ()
        ours = self.reclaim or _HOOK_TIMEOUT
        others = () if self.other_hook is None else (Hook(timeout=self.other_hook, ours=False),)
        return Hook(timeout=ours), *others

    @property
    def goes_after(self) -> timedelta | None:
        """From the notice to the moment the instance goes; None: it does not go."""
        if self.hooks:
            return min(hook.timeout for hook in self.hooks)
        if self.reclaim is not None:
            return self.reclaim
        if self.notice == "state-change":
            return timedelta(0) if self.state in _ENDING_STATES else None
        return _GRACE_OF_KIND[self.notice]

    @property
    @override
    def ends(self) -> timedelta:
        """When the last of its notices has come."""
        return self.at + self.spread

    @override
    def contradictions(self) -> Iterator[Contradiction]:
        changes = self.notice == "state-change"
        if changes != (self.state is not None):
            yield Contradiction(
                path=("state",),
                found="nothing" if self.state is None else shown(self.state),
                allowed="a state with the notice state-change, and with no other",
                cure="Name the new state" if changes else "Remove it",
            )
        for name, given, kind in (
            ("byOwner", self.by_owner, "state-change"),
            ("otherHook", self.other_hook is not None, "lifecycle-terminate"),
        ):
            if given and self.notice != kind:
                yield Contradiction(
                    path=(name,),
                    found=f"{name} with the notice {self.notice}",
                    allowed=f"{name} with the notice {kind} only",
                    cure="Remove it",
                )

    @override
    def mismatches(self, clusters: Sequence[ClusterSpec]) -> Iterator[Contradiction]:
        yield from (each.under("nodes") for each in self.nodes.mismatches(clusters))
        groups = [(c, g) for c in clusters for g in c.node_groups]
        growing = [g for c, g in groups if self.nodes.takes_group(c.name, g) and g.kind != "static"]
        if self.returns is not None and growing:
            yield Contradiction(
                path=("returns",),
                found=f"returns for nodes of {growing[0].name}, which replaces what ends",
                allowed="returns for nodes of static groups only",
                cure="Select a static group, or remove it",
            )


class FaultEntry(Timed):
    """Something that breaks for a while."""

    fault: FaultName = Field(
        description=f"What breaks. {'; '.join(f'{n}: {f.breaks}' for n, f in FAULTS.items())}."
    )
    lasts: Duration = Field(validation_alias="for", serialization_alias="for")
    """How long the fault lasts."""
    cluster: Label | None = None
    """For api-server-*: the cluster meant; without it, all clusters."""
    nodes: GroupSelector = GroupSelector()
    latency: Duration = timedelta(0)
    """For api-server-slow: how much longer each answer takes."""
    fraction: Share = 1.0
    """For notices-* and aws-throttled: the share that is hit, drawn by the seed; default 1."""
    delay: Duration = timedelta(seconds=1)
    """For notices-delayed: how much later they arrive. For notices-duplicated: how much later the copy arrives; default 1s."""
    function: Literal["notices", "drains", "placement", "sweep"] | None = None
    """For function-killed: which function."""
    service: Word | None = None
    """For aws-throttled: the AWS service, as its endpoint is named, for example autoscaling."""

    @property
    @override
    def ends(self) -> timedelta:
        """When it works again."""
        return self.at + self.lasts

    @override
    def contradictions(self) -> Iterator[Contradiction]:
        needed, possible = FAULTS[self.fault].needs, FAULTS[self.fault].takes
        given = self.model_fields_set - {"place"}
        for name in sorted(needed - given):
            yield Contradiction(
                path=(name,),
                found="nothing",
                allowed=f"{name}, which {self.fault} needs",
                cure=f"Add {name}",
            )
        for name in sorted(given - {"at", "fault", "lasts"} - needed - possible):
            yield Contradiction(
                path=(name,),
                found=f"{name}, which means nothing for {self.fault}",
                allowed=listed(sorted({"at", "fault", "for"} | needed | possible)),
                cure="Remove it",
            )
        if self.lasts <= timedelta(0):
            yield Contradiction(
                path=("for",),
                found=words(self.lasts),
                allowed="more than 0s",
                cure="Say how long the fault lasts",
            )

    @override
    def mismatches(self, clusters: Sequence[ClusterSpec]) -> Iterator[Contradiction]:
        if "nodes" in self.model_fields_set:
            yield from (each.under("nodes") for each in self.nodes.mismatches(clusters))
        if self.cluster is not None:
            yield from _one_cluster(self.cluster, clusters)


class Scale(Declared):
    """The workload and its new count."""

    cluster: Label = ""
    """The cluster meant. May be left out where the scenario has only one."""
    kind: Literal["Deployment", "StatefulSet", "ReplicaSet"]
    """The kind of the workload."""
    namespace: Label = "default"
    """Its namespace; default default."""
    name: Name
    """Its name."""
    replicas: Annotated[int, Field(ge=0, le=100_000)]
    """The new count."""


class ScaleEntry(Timed):
    """The owner changes a workload's replicas."""

    scale: Scale

    @override
    def mismatches(self, clusters: Sequence[ClusterSpec]) -> Iterator[Contradiction]:
        yield from (each.under("scale") for each in _one_cluster(self.scale.cluster, clusters))


class ApplyEntry(Timed):
    """The owner applies manifests, as a rollout does."""

    file: File = Field(validation_alias="apply")
    """A file of Kubernetes manifests, relative to the scenario."""
    cluster: Label = ""
    """The cluster meant. May be left out where the scenario has only one."""

    @override
    def mismatches(self, clusters: Sequence[ClusterSpec]) -> Iterator[Contradiction]:
        yield from _one_cluster(self.cluster, clusters)


def _one_cluster(name: str, clusters: Sequence[ClusterSpec]) -> Iterator[Contradiction]:
    if name and all(name != cluster.name for cluster in clusters):
        yield _unknown_cluster(name, clusters)
    elif not name and len(clusters) > 1:
        yield Contradiction(
            path=("cluster",),
            found="nothing, with several clusters",
            allowed=listed(cluster.name for cluster in clusters),
            cure="Add cluster",
        )


def _unknown_cluster(name: str, clusters: Sequence[ClusterSpec]) -> Contradiction:
    return _unknown(("cluster",), "cluster", name, [cluster.name for cluster in clusters])


def _unknown(path: FieldPath, what: str, name: str, known: Sequence[str]) -> Contradiction:
    return Contradiction(
        path=path,
        found=f"the unknown {what} {name}",
        allowed=listed(dict.fromkeys(known)),
        cure=rename(name, known, f"Name a {what} of this scenario"),
    )


ENTRIES: Final[Mapping[str, type[Timed]]] = {
    "notice": NoticeEntry,
    "fault": FaultEntry,
    "scale": ScaleEntry,
    "apply": ApplyEntry,
}
"""The kinds of entries, by the field that tells them apart."""


def _kind_of_entry(value: Any) -> str | None:
    if isinstance(value, Timed):
        return type(value).__name__
    there = value if isinstance(value, dict) else ()
    return next((model.__name__ for field, model in ENTRIES.items() if field in there), None)


type Entry = Annotated[
    Annotated[NoticeEntry, Tag("NoticeEntry")]
    | Annotated[FaultEntry, Tag("FaultEntry")]
    | Annotated[ScaleEntry, Tag("ScaleEntry")]
    | Annotated[ApplyEntry, Tag("ApplyEntry")],
    Discriminator(_kind_of_entry),
]


class Bounds(Declared):
    """What must hold for a workload, or for the whole drill: maxima, as far as they are given."""

    pods_killed: Whole | None = None
    """At most this many pods still running when their instance vanished."""
    pods_cut_short: Whole | None = None
    """At most this many pods that got SIGKILL early because the responder shortened their grace period."""
    seconds_below_floor: Amount | None = None
    """At most this many seconds below the ready floor."""
    seconds_below_replicas: Amount | None = None
    """At most this many seconds with fewer Ready pods than replicas."""
    seconds_at_zero: Amount | None = None
    """At most this many seconds with no Ready pod at all."""
    ready_replica_seconds_lost: Amount | None = None
    """At most this many ready-replica seconds lost: the shortfall of Ready pods, summed over time."""


class WorkloadBounds(Bounds):
    """What must hold for a workload."""

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
    """What must hold when the responder is plimsoll; makes the drill a test."""

    cordoned_within: Duration | None = None
    """The slowest cordon after a notice that has a deadline."""
    emptied_before_gone: bool = False
    """true: every instance that got a notice and went was empty by then. false asks nothing."""
    settled: bool = False
    """true: the drill came to rest before its horizon. false asks nothing."""
    workloads: dict[WorkloadName, WorkloadBounds] = Field(default_factory=dict)
    """By namespace/name; "*" stands for every workload that is not named."""


class Spec(Declared):
    """The clusters, the timeline and what is expected."""

    seed: Annotated[int, Field(ge=0, le=2**63 - 1)] = 0
    """Seed of everything that is drawn; default 0. --seed beats it."""
    horizon: Duration = timedelta(minutes=15)
    """The drill ends here at the latest, and earlier once it is settled; default 15m."""
    latency: Latency = Latency()
    prices: Prices = Prices()
    clusters: Annotated[tuple[ClusterSpec, ...], Field(min_length=1)]
    """The clusters at the start."""
    timeline: tuple[Entry, ...] = ()
    """What happens, in any order; each entry is one of notice, fault, scale and apply."""
    expect: Expect | None = None

    @override
    def contradictions(self) -> Iterator[Contradiction]:
        if not timedelta(0) < self.horizon <= MAX_HORIZON:
            yield Contradiction(
                path=("horizon",),
                found=words(self.horizon),
                allowed=f"more than 0s, at most {words(MAX_HORIZON)}",
                cure="Choose when the drill shall end at the latest",
            )
        yield from repeated("clusters", [cluster.name for cluster in self.clusters], "cluster")
        for i, entry in enumerate(self.timeline):
            if entry.at > self.horizon:
                yield Contradiction(
                    path=("timeline", i, "at"),
                    found=words(entry.at),
                    allowed=f"at most the horizon, {words(self.horizon)}",
                    cure="Raise spec.horizon, or let it happen earlier",
                )
            yield from (each.under("timeline", i) for each in entry.mismatches(self.clusters))


class Metadata(Declared):
    """What the drill is called."""

    name: Name
    """The drill's name; the report carries it."""
    description: Annotated[str, Field(max_length=2000)] = ""
    """What it is about, in a sentence."""


class DrillFile(Declared):
    """A timeline of interruptions and faults, played against a cluster to measure what its workloads feel."""

    api_version: Literal["plimsoll.dev/v1"]
    """The version of this format."""
    kind: Literal["Drill"]
    """The kind of this file."""
    metadata: Metadata
    spec: Spec


class Scenario(Spec):
    """One drill, as rigs use it: its timeline sorted, and the one cluster named where it was left out."""

    name: str
    description: str = ""
    file: Path
    document: Document = Field(repr=False)
    """The file as plain values, and the line of each."""

    def cluster(self, name: str) -> ClusterSpec:
        """Return one of its clusters by name."""
        return next(cluster for cluster in self.clusters if cluster.name == name)
