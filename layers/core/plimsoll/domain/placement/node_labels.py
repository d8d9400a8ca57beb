"""Which spread label each node carries: only while its group can hold its share.

A group with a single full survivor would pin the minimum of the spread, and leave pods Pending
beside free nodes of other groups. So the label is on all nodes of a group, or on none. The group of
on-demand nodes is closed only for a pod that has waited for it in vain, though another node has a
place: until then an autoscaler may bring a node for that pod.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Final

from plimsoll.domain.kubernetes import CAPACITY_LABELS, Node, Resources, Workload, why_never
from plimsoll.domain.observation import Observation
from plimsoll.domain.placement.pending import places_of_waiting
from plimsoll.domain.placement.reserve import GOES_FACTOR, STAYS_FACTOR, takes
from plimsoll.domain.placement.slots import free_without
from plimsoll.domain.placement.spread_groups import (
    ON_DEMAND,
    SINGLE_REPLICA,
    Layout,
    groups_of,
    label_key,
    on_demand_group,
)
from plimsoll.domain.scheduling import count_places, creatable

REOPENS_SHARE: Final = 0.9
"""A closed group opens when its share fills at most this much of it: else it would open and close."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SpreadGroup:
    """One group of nodes, as the workloads with one layout see it."""

    layout: Layout
    name: str
    """`on-demand`, `spot-1` and so on."""
    nodes: tuple[str, ...]
    opened: bool
    reason: str


UNDERCUTS: Final = "with so few on-demand groups open, one more spot group would undercut the floor"


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """What all workloads that are spread over the same groups ask of each of them."""

    workloads: Sequence[Workload]
    groups: int
    """How many groups are open, on-demand among them: each takes an even share of every workload."""
    nodes: Sequence[Node]
    """Those of all groups that take pods."""
    free: Mapping[str, Resources]
    """Node -> what is left on it without their pods, which the shares stand for."""


def spread_groups(
    seen: Observation, spread: Mapping[Layout, Sequence[Workload]], now: datetime
) -> Sequence[SpreadGroup]:
    """Return the groups of every layout that workloads use, open or closed.

    Args:
        seen: one observation of the cluster.
        spread: layout -> the workloads that are spread so.
        now: the time of the observation.
    """
    found: list[SpreadGroup] = []
    for layout, workloads in sorted(spread.items()):
        members = _members(seen.nodes, layout)
        places = places_of_waiting(seen, workloads, now)
        judged = (
            _without_surplus(
                {name: _judge_for_waiting(nodes, places) for name, nodes in members.items()},
                members,
                layout,
            )
            if places
            else _judge_all(seen, members, workloads, layout)
        )
        found += [
            SpreadGroup(
                layout=layout,
                name=name,
                nodes=tuple(node.name for node in members[name]),
                opened=opened,
                reason=reason,
            )
            for name, (opened, reason) in sorted(judged.items())
        ]
    return found


def label_changes(
    nodes: Sequence[Node], groups: Sequence[SpreadGroup], *, capacity: bool = False
) -> Iterator[tuple[Node, Mapping[str, str | None], str]]:
    """Yield the nodes whose labels are to change, the change, and why. None takes a label off.

    A node that takes no pods is counted by no spread: it is given no label. With `capacity`, a node
    whose capacity type only labels of others tell gets the well-known one.
    """
    wanted: dict[str, dict[str, SpreadGroup]] = defaultdict(dict)
    for group in groups:
        for name in group.nodes:
            wanted[name][label_key(group.layout)] = group
    for node in nodes:
        change: dict[str, str | None] = {}
        reasons = []
        for key, group in wanted[node.name].items():
            value = group.name if group.opened else None
            if node.labels.get(key) != value and (node.staying or value is None):
                change[key] = value
                reasons.append(f"{group.name} of {group.layout.entry}: {group.reason}")
        if capacity and node.capacity is not None and CAPACITY_LABELS[0] not in node.labels:
            change[CAPACITY_LABELS[0]] = node.capacity
            reasons.append("another label says so")
        if change:
            yield node, change, "; ".join(reasons)


def _members(nodes: Sequence[Node], layout: Layout) -> Mapping[str, Sequence[Node]]:
    group = groups_of(nodes, layout)
    members: dict[str, list[Node]] = defaultdict(list)
    for node in nodes:
        if node.name in group:
            members[group[node.name]].append(node)
    return members


def _judge_for_waiting(nodes: Sequence[Node], places: Collection[str]) -> tuple[bool, str]:
    """Open the groups with a place for a pod that waited: one without would pin the minimum."""
    if any(node.name in places for node in nodes):
        return True, "a pod waited for a place that its nodes have"
    return False, "a pod waits, and none of its nodes has a place"


def _judge_all(
    seen: Observation,
    members: Mapping[str, Sequence[Node]],
    workloads: Sequence[Workload],
    layout: Layout,
) -> Mapping[str, tuple[bool, str]]:
    """Return by name whether each group is open, and why."""
    asked = Asked(
        workloads=workloads,
        groups=max(
            1,
            _kept_open(
                [g for g, nodes in members.items() if any(n.staying for n in nodes)], layout
            ),
        ),
        nodes=[node for nodes in members.values() for node in nodes if node.staying],
        free=free_without(seen, {workload.ref for workload in workloads}),
    )
    judged: dict[str, tuple[bool, str]] = {}
    while True:  # every group that closes leaves larger shares for the others
        for name, nodes in members.items():
            if judged.get(name, (True, ""))[0]:
                judged[name] = _judge(seen, name, nodes, layout, asked)
        still = max(1, _kept_open([name for name, (opened, _) in judged.items() if opened], layout))
        if still == asked.groups:
            return _without_surplus(judged, members, layout)
        asked = replace(asked, groups=still)


def _kept_open(names: Collection[str], layout: Layout) -> int:
    """Return how many of some groups may be open together."""
    on_demand = sum(on_demand_group(name) for name in names)
    spot = len(names) - on_demand
    return on_demand + min(spot, _most_spot_groups(on_demand, layout))


def _most_spot_groups(on_demand: int, layout: Layout) -> int:
    """Return how many spot groups may be open; without on-demand there is no floor that they could undercut."""
    if layout == SINGLE_REPLICA or not on_demand:
        return max(1, layout.spot_groups)
    return layout.most_spot_groups(on_demand)


def _without_surplus(
    judged: Mapping[str, tuple[bool, str]], members: Mapping[str, Sequence[Node]], layout: Layout
) -> Mapping[str, tuple[bool, str]]:
    """Close spot groups that would undercut the floor, since on-demand groups are closed; first those that were."""
    key = label_key(layout)
    opened = [name for name, (is_open, _) in judged.items() if is_open]
    spot = [name for name in opened if not on_demand_group(name)]
    was_closed = {name for name in spot if not any(key in node.labels for node in members[name])}
    spot.sort(key=lambda name: (name in was_closed, name))
    surplus = spot[_most_spot_groups(len(opened) - len(spot), layout) :]
    return {**judged, **dict.fromkeys(surplus, (False, UNDERCUTS))}


def _judge(
    seen: Observation, name: str, nodes: Sequence[Node], layout: Layout, asked: Asked
) -> tuple[bool, str]:
    """Return whether a group is open, and why."""
    staying = [node for node in nodes if node.staying]
    if not staying:
        return False, "none of its nodes takes pods"
    was_open = any(label_key(layout) in node.labels for node in staying)
    if on_demand_group(name):
        return True, "on-demand nodes carry it always"
    if layout == SINGLE_REPLICA:
        times = STAYS_FACTOR if was_open else GOES_FACTOR
        reserve = [n for n in seen.nodes if n.capacity == ON_DEMAND and n.staying]
        riders = [
            (w.scheduling, _most_pods(seen, w) * times)
            for w in asked.workloads
            if any(why_never(w.scheduling, node) is None for node in reserve)
        ]
        if not reserve or not takes(riders, reserve, asked.free):
            return False, f"the on-demand reserve has not {times} places for every single replica"
    free = [asked.free[node.name] for node in staying]
    shares: list[tuple[int, Resources]] = []
    for workload in asked.workloads:
        share, each = workload.replicas // asked.groups, workload.scheduling.requests
        places = count_places(each, free, share)
        if places < share:
            share = _possible(seen, workload, staying, asked)
        if places < share:
            return False, f"it has {places} places for a share of {share} pods"
        shares.append((share, each))
    filled = _filled(shares, free)
    return (
        filled <= (1.0 if was_open else REOPENS_SHARE),
        f"its share fills {filled:.0%} of what its {len(staying)} nodes have free",
    )


def _possible(seen: Observation, workload: Workload, staying: Sequence[Node], asked: Asked) -> int:
    """Return the share of a group in the pods that a workload can have, whatever its owner declares.

    The label is the same for all workloads. A count that no quota allows and no nodes can hold, or
    nodes that the pods never go to, must not take a group from the others.
    """
    scheduling = workload.scheduling
    if all(why_never(scheduling, node) is not None for node in staying):
        return 0
    count = _most_pods(seen, workload)
    free = [asked.free[n.name] for n in asked.nodes if why_never(scheduling, n) is None]
    return count_places(scheduling.requests, free, count) // asked.groups


def _most_pods(seen: Observation, workload: Workload) -> int:
    there = len(seen.of_workload.get(workload.ref, ()))
    return there + creatable(seen, workload, max(0, workload.replicas - there))


def _filled(shares: Sequence[tuple[int, Resources]], free: Sequence[Resources]) -> float:
    """Return the fullest of processors, memory and pods when every share stands there."""
    return max(
        sum(pods * each.cpu for pods, each in shares) / _some(r.cpu for r in free),
        sum(pods * each.memory for pods, each in shares) / _some(r.memory for r in free),
        sum(pods for pods, _ in shares) / _some(r.pods for r in free),
    )


def _some(amounts: Iterable[int]) -> int:
    return max(1, sum(amounts))
