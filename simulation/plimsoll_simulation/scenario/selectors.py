"""Which nodes or node groups an entry of the timeline is about."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Annotated, override

from pydantic import AfterValidator, Field

from plimsoll_simulation.declared import Contradiction, Declared, FieldPath, Label, Word
from plimsoll_simulation.fake_aws.nodegroups import Capacity, NodeGroupSpec, each_once
from plimsoll_simulation.scenario.clusters import ClusterSpec
from plimsoll_simulation.scenario.problems import listed, rename, shown

type Share = Annotated[float, Field(gt=0, le=1)]


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


def one_cluster(name: str, clusters: Sequence[ClusterSpec]) -> Iterator[Contradiction]:
    """Yield what is wrong with a name that means one of these clusters, and may be left out of one."""
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
