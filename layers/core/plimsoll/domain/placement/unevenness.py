"""Which workloads stand unevenly on their spread groups, and the move that would make each more even.

A move repairs an on-demand floor that scale-in or a lost node broke, or brings a pod back to spot after a storm.
Both are one rule: the fullest open group stands more than one pod above the emptiest, which the scheduler would not
have allowed. Each move makes that smaller, so moves end.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from operator import attrgetter
from typing import Self

from plimsoll.domain.kubernetes import CAPACITY_LABELS, Pod, Workload
from plimsoll.domain.observation import Observation
from plimsoll.domain.placement.move_history import next_mark
from plimsoll.domain.placement.node_labels import SpreadGroup
from plimsoll.domain.placement.rebalancing import Move, drawn_order, settled_pods
from plimsoll.domain.placement.spread_groups import (
    NO_GROUPS,
    ON_DEMAND,
    SINGLE_REPLICA,
    SPOT,
    Layout,
    label_key,
    on_demand_group,
)


def uneven(
    seen: Observation,
    spread: Mapping[Layout, Sequence[Workload]],
    groups: Sequence[SpreadGroup],
    now: datetime,
    pinned: Sequence[Workload] = (),
) -> Iterator[Move]:
    """Yield the moves of workloads whose fullest group stands more than one pod above their emptiest.

    Workloads that stand too seldom on on-demand come first. The others are in an order that the time
    decides, so that those whose pods fit nowhere do not hold the rest back.

    Args:
        seen: one observation of the cluster.
        spread: layout -> the workloads whose next pods are spread so.
        groups: the spread groups, open and closed.
        now: the time of the observation.
        pinned: workloads whose next pods are let to on-demand nodes only.
    """
    every = [(_OpenGroups.of(seen, NO_GROUPS, {ON_DEMAND}), pinned)]
    for layout, workloads in spread.items():
        names = {g.name for g in groups if g.layout == layout and g.opened}
        every.append((_OpenGroups.of(seen, layout, names), workloads))
    found = (_unevenness(seen, w, opened) for opened, workloads in every for w in workloads)
    drawn = drawn_order(now)
    ordered = sorted(
        (one for one in found if one is not None),
        key=lambda one: (not on_demand_group(one.emptiest), drawn(one.workload)),
    )
    # After a storm all workloads may be uneven, and a run tries few: only the pods of those are looked at one by one.
    moves = (one.move(now) for one in ordered)
    yield from (move for move in moves if move is not None)


@dataclass(frozen=True, slots=True, kw_only=True)
class _OpenGroups:
    """The open groups of a layout."""

    layout: Layout
    key: str
    """The label that names the group of a node."""
    names: Sequence[str]
    """In order."""
    group_of: Mapping[str | None, str]
    """Node -> its group, open or closed, as its label says: to look up `Pod.node` in."""

    @classmethod
    def of(cls, seen: Observation, layout: Layout, names: Collection[str]) -> Self:
        """Return the groups with these names."""
        key = CAPACITY_LABELS[0] if layout == NO_GROUPS else label_key(layout)
        labels = ((node.name, node.labels.get(key)) for node in seen.nodes)
        group_of: Mapping[str | None, str] = {name: g for name, g in labels if g is not None}
        return cls(layout=layout, key=key, names=sorted(names), group_of=group_of)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Unevenness:
    """A workload of which a pod is to leave a group."""

    workload: Workload
    opened: _OpenGroups
    fullest: str
    emptiest: str
    pods: Sequence[Pod]
    """All of it."""
    apart: Sequence[Pod]
    """Those on spot nodes of no open group, where one of these is to leave."""
    reason: str

    def move(self, now: datetime) -> Move | None:
        """Return the move of a pod; None while the pause after one in vain lasts."""
        group_of, key, fullest = self.opened.group_of, self.opened.key, self.fullest
        movable = self.apart or sorted(
            (pod for pod in self.pods if group_of.get(pod.node) == fullest), key=attrgetter("name")
        )
        mark = next_mark(fullest, movable, now)
        if mark is None:
            return None
        return Move(
            workload=self.workload,
            key=key,
            movable=movable,
            lands=lambda node: node.labels.get(key) != fullest,
            mark=mark,
            reason=self.reason,
        )


def _unevenness(seen: Observation, workload: Workload, opened: _OpenGroups) -> _Unevenness | None:
    pods, layout, group_of = settled_pods(seen, workload), opened.layout, opened.group_of
    counts = Counter(map(group_of.get, [pod.node for pod in pods]))
    standing = {name: counts[name] for name in opened.names}
    apart: list[Pod] = []
    if sum(standing.values()) < len(pods):
        apart = [
            pod
            for pod in pods
            if group_of.get(pod.node) not in standing and seen.capacities.get(pod.node) == SPOT
        ]
    if (
        apart
        and any(map(on_demand_group, standing))
        and (reason := _why_to_on_demand(seen, workload, layout, len(apart))) is not None
    ):
        fullest, emptiest = SPOT, ON_DEMAND
    elif standing:
        apart = []
        fullest = max(standing, key=standing.__getitem__)
        emptiest = min(standing, key=standing.__getitem__)
        most, least = standing[fullest], standing[emptiest]
        if most - least <= 1 or _is_even(standing):
            return None
        # Pods on closed spot groups are not counted here: the open groups can be uneven while the floor is just kept.
        to_spot = on_demand_group(fullest) and not on_demand_group(emptiest)
        if to_spot and _on_demand(seen, workload) <= layout.floor(len(pods)):
            return None
        reason = f"{most} of its pods stand on {fullest} and {least} on {emptiest}"
    else:
        return None
    return _Unevenness(
        workload=workload,
        opened=opened,
        fullest=fullest,
        emptiest=emptiest,
        pods=pods,
        apart=apart,
        reason=reason,
    )


def _on_demand(seen: Observation, workload: Workload) -> int:
    return seen.serving_by_capacity[workload.ref][ON_DEMAND]


def _why_to_on_demand(
    seen: Observation, workload: Workload, layout: Layout, apart: int
) -> str | None:
    """Say why pods on spot nodes of no open group must not stay there; None where they may."""
    if layout == NO_GROUPS:
        return "all its replicas must stand on on-demand"
    if layout == SINGLE_REPLICA:
        return "it is a single replica, and the on-demand reserve may not take it later"
    on_demand = _on_demand(seen, workload)
    if on_demand < layout.floor(workload.replicas):
        return f"{on_demand} of its pods stand on on-demand and {apart} on closed spot groups"
    return None


def _is_even(counts: Mapping[str, int]) -> bool:
    """Whether groups hold even shares if those of on-demand are taken together: a move between these keeps no floor."""
    spot = [count for name, count in counts.items() if not on_demand_group(name)]
    on_demand = sum(counts.values()) - sum(spot)
    groups = len(counts) - len(spot)
    shares: list[int] = [*spot, *((on_demand // groups, -(-on_demand // groups)) if groups else ())]
    return max(shares) - min(shares) <= 1
