"""What a placement plan tells of a cluster beside its load lines: floors, promises, spread groups, reserve, changes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from plimsoll.domain.kubernetes import INSTANCE_TYPE, Node, Ref

if TYPE_CHECKING:  # the first page does not wait for what it never needs
    from plimsoll.domain.observation import Observation
    from plimsoll.domain.placement import Layout, PlacementPlan, SpreadGroup

DRAWN: Final = 60
"""Nodes of one group that are drawn; of more only the number is told."""
NAMED: Final = 12
"""Workloads that are named in one node, those with a floor first."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Table:
    """Rows of words; the first column names its row."""

    title: str
    columns: Sequence[str]
    rows: Sequence[Sequence[str]]
    note: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Chip:
    """The pods of one workload on one node."""

    name: str
    pods: int
    floor: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeBox:
    """One node."""

    name: str
    facts: str
    staying: bool
    chips: Sequence[Chip]
    more: int
    """Pods of workloads that are not named."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupBoxes:
    """One spread group, or the nodes that are in none."""

    title: str
    state: str
    closed: bool
    boxes: Sequence[NodeBox]
    more: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Placement:
    """A plan, in words."""

    floors: int
    missed: Sequence[str]
    """Floors that do not stand."""
    problems: Sequence[str]
    notes: Sequence[str]
    """What spot saves, by which prices, and pods without a floor."""
    workloads: Table
    promises: Sequence[Sequence[str]]
    """Of each promised workload what it keeps, and what that follows from."""
    groups: Sequence[tuple[str, Sequence[GroupBoxes]]]
    """Layout in words -> its spread groups."""
    reserve: Table
    steps: Table
    held: str | None
    """Why no pod is moved."""

    @property
    def verdict(self) -> str:
        """Whether every floor stands."""
        if self.missed:
            return f"{len(self.missed)} of {self.floors} on-demand floors {'is' if len(self.missed) == 1 else 'are'} missed."
        return (
            "Every on-demand floor is met." if self.floors else "No on-demand floor is asked for."
        )


def groups_of(seen: Observation, plan: PlacementPlan) -> Sequence[tuple[str, Sequence[GroupBoxes]]]:
    """Return the spread groups of each layout with their nodes, and last the nodes that are in no group."""
    spreads: dict[Layout, list[SpreadGroup]] = {}
    for group in plan.groups:
        spreads.setdefault(group.layout, []).append(group)
    floors = {status.floor.workload for status in plan.workloads}

    def boxes(nodes: Iterable[Node], title: str, state: str, *, closed: bool) -> GroupBoxes:
        there = list(nodes)
        return GroupBoxes(
            title=title,
            state=state,
            closed=closed,
            boxes=[_box(seen, node, floors) for node in there[:DRAWN]],
            more=max(0, len(there) - DRAWN),
        )

    found: list[tuple[str, Sequence[GroupBoxes]]] = [
        (
            f"Spread over {layout} groups" if layout.spot_groups else "Single replicas",
            [
                boxes(
                    (seen.node[name] for name in group.nodes),
                    group.name,
                    f"{'open' if group.opened else 'closed'}: {group.reason}",
                    closed=not group.opened,
                )
                for group in groups
            ],
        )
        for layout, groups in sorted(spreads.items())
    ]
    apart = [node for node in seen.nodes if node.capacity is None]
    if apart:
        why = "no label says whether they are on-demand or spot"
        found.append(("In no group", [boxes(apart, "in no group", why, closed=True)]))
    return found


def _box(seen: Observation, node: Node, floors: Collection[Ref]) -> NodeBox:
    counts = Counter(seen.workload_of(pod) for pod in seen.on_node.get(node.name, ()))
    order = sorted(counts, key=lambda ref: (ref not in floors, ref))
    facts = [node.labels.get(INSTANCE_TYPE), node.zone, None if node.staying else "cordoned"]
    return NodeBox(
        name=node.name,
        facts=", ".join(fact for fact in facts if fact),
        staying=node.staying,
        chips=[
            Chip(name=f"{ref.namespace}/{ref.name}", pods=counts[ref], floor=ref in floors)
            for ref in order[:NAMED]
        ],
        more=sum(counts[ref] for ref in order[NAMED:]),
    )
