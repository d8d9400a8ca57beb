"""The entries of the timeline: notices, faults, and what the owner does."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from datetime import timedelta
from typing import Annotated, Any, Final, Literal, override

from pydantic import Discriminator, Field, Tag

from plimsoll_simulation.declared import Contradiction, Declared, Label, Name, Word
from plimsoll_simulation.durations import Duration, words
from plimsoll_simulation.fake_aws.machines import Hook
from plimsoll_simulation.fake_aws.nodegroups import NodeGroupSpec
from plimsoll_simulation.scenario.clusters import ClusterSpec, File, Placed
from plimsoll_simulation.scenario.faults import FAULTS, FaultName
from plimsoll_simulation.scenario.problems import listed, shown
from plimsoll_simulation.scenario.selectors import GroupSelector, Selector, Share, one_cluster


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
    """The kind of notice. spot-interruption and capacity-reservation-interruption: the instance goes 120 s later; rebalance-recommendation: it does not go unless reclaim is given; lifecycle-terminate: a hook that times out after 5m, for nodes that are not of static groups; health-scheduled-change: it goes after 2h; state-change: the new state is in state; none: the instance goes without a word, after reclaim."""
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

    def concerns(self, group: NodeGroupSpec) -> bool:
        """Whether AWS may say this of a group: Auto Scaling knows only instances of its own groups."""
        return self.notice != "lifecycle-terminate" or group.kind != "static"

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
        taken = [g for c in clusters for g in c.node_groups if self.nodes.takes_group(c.name, g)]
        if taken and not any(map(self.concerns, taken)):
            yield Contradiction(
                path=("notice",),
                found=f"{self.notice} for nodes of {taken[0].name}, which is static",
                allowed=f"{self.notice} for nodes of Auto Scaling and managed node groups",
                cure="Select such a group, or name another notice",
            )
        growing = [g for g in taken if g.kind != "static"]
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
    function: Literal["notices", "drains", "placement", "schedule", "sweep"] | None = None
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
            yield from one_cluster(self.cluster, clusters)


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
        yield from (each.under("scale") for each in one_cluster(self.scale.cluster, clusters))


class ApplyEntry(Timed):
    """The owner applies manifests, as a rollout does."""

    file: File = Field(validation_alias="apply")
    """A file of Kubernetes manifests, relative to the scenario."""
    cluster: Label = ""
    """The cluster meant. May be left out where the scenario has only one."""

    @override
    def mismatches(self, clusters: Sequence[ClusterSpec]) -> Iterator[Contradiction]:
        yield from one_cluster(self.cluster, clusters)


class ZonalShiftEntry(Timed):
    """Traffic is shifted away from a zone, and back: by a zonal autoshift, or for practice."""

    zone: Label = Field(validation_alias="zonalShift", serialization_alias="zonalShift")
    """The zone that traffic leaves, by name."""
    lasts: Duration = Field(validation_alias="for", serialization_alias="for")
    """How long the shift lasts."""
    practice: bool = False
    """Whether it is a practice run of every cluster, in which nothing is wrong with the zone; default false."""

    @property
    @override
    def ends(self) -> timedelta:
        """When traffic comes back."""
        return self.at + self.lasts

    @override
    def mismatches(self, clusters: Sequence[ClusterSpec]) -> Iterator[Contradiction]:
        zones = sorted({zone for c in clusters for g in c.node_groups for zone in g.zones})
        if self.zone not in zones:
            yield Contradiction(
                path=("zonalShift",),
                found=shown(self.zone),
                allowed=listed(zones),
                cure="Name a zone of a node group",
            )


ENTRIES: Final[Mapping[str, type[Timed]]] = {
    "notice": NoticeEntry,
    "fault": FaultEntry,
    "scale": ScaleEntry,
    "apply": ApplyEntry,
    "zonalShift": ZonalShiftEntry,
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
    | Annotated[ApplyEntry, Tag("ApplyEntry")]
    | Annotated[ZonalShiftEntry, Tag("ZonalShiftEntry")],
    Discriminator(_kind_of_entry),
]
