"""Voluntary moves: one pod of a workload goes to the emptiest of its spread groups, by release.

They repair an on-demand floor that scale-in or a lost node broke, and bring pods back to spot after
a storm. Both are one rule: the fullest open group stands more than one pod above the emptiest, which
the scheduler would not have allowed. Each move makes that smaller, so moves end. One that did not,
since its replacement came back, is followed by a pause, longer each time: see `plimsoll.domain.placement.move_history`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from itertools import islice
from operator import attrgetter
from typing import Final, Self
from zlib import crc32

from plimsoll.domain.actions import Release
from plimsoll.domain.disruptions import why_not_released
from plimsoll.domain.interruptions import NEAR
from plimsoll.domain.kubernetes import (
    CAPACITY_LABELS,
    POD_TEMPLATE_HASH,
    RELEASED_FOR_PLACEMENT,
    Node,
    Pod,
    Workload,
    replacement_of,
    why_protected,
)
from plimsoll.domain.observation import Observation
from plimsoll.domain.placement.injection import as_injected
from plimsoll.domain.placement.move_history import Mark, moves_within_hour, next_mark
from plimsoll.domain.placement.node_labels import SpreadGroup
from plimsoll.domain.placement.spread_groups import (
    NO_GROUPS,
    ON_DEMAND,
    SINGLE_REPLICA,
    SPOT,
    Layout,
    label_key,
    on_demand_group,
)
from plimsoll.domain.scheduling import ClusterSnapshot

MOST_MOVES: Final = 10
"""Moves under way in a cluster at a time: the next begin when the drain has ended these."""
HELD: Final = timedelta(minutes=10)
"""For how long a Pending pod holds moves: one that no node ever takes must not hold them for ever."""
TRIED_WORKLOADS: Final = 50
"""For how many workloads one run looks whether a pod fits elsewhere: each look is at all nodes."""


def why_not_now(seen: Observation, now: datetime) -> str | None:
    """Say what forbids any voluntary move in a cluster now; None where nothing does."""
    for node in seen.nodes:
        found = node.interruption
        if found is None or found.deadline is None or found.gone or found.phase == "closed":
            continue
        if abs(found.deadline - now) < NEAR:
            return f"node {node.name} is interrupted"
    young = now - HELD
    waiting = next((pod for pod in seen.pending if pod.created > young), None)
    if waiting is not None:
        return f"pod {waiting} is Pending"
    if _left(seen, now) < 1:
        return f"{seen.policy.moves(len(seen.pods))} pods were moved within the hour"
    return None


def _left(seen: Observation, now: datetime) -> int:
    """Return what is left of the budget of the cluster."""
    return seen.policy.moves(len(seen.pods)) - moves_within_hour(seen.of_workload.values(), now)


def plan_moves(seen: Observation, moves: Iterable[Move], now: datetime) -> Moves:
    """Return the moves of one run: at most one pod of each workload, and only where it provably fits.

    Args:
        seen: one observation of the cluster, in which nothing forbids moves.
        moves: what is to be moved, in the order in which it is tried.
        now: the time of the observation.
    """
    waiting = [*islice(moves, TRIED_WORKLOADS)]
    if not waiting:
        return Moves()  # a snapshot of a large cluster takes seconds
    most = min(MOST_MOVES, max(0, _left(seen, now)))
    releases, homeless = list[Release](), list[Pod]()
    snapshot = ClusterSnapshot(seen.nodes, seen.pods, seen.claims)
    for move in waiting:
        if len(releases) + len(homeless) >= most:
            break
        free = _free(seen, move, now)
        pod = next((pod for pod in free if _lands(snapshot, pod, move)), None)
        if pod is not None and pod.owner is not None:
            releases.append(
                Release(
                    pod=pod,
                    replica_set=seen.replica_sets[pod.owner],
                    interruption=RELEASED_FOR_PLACEMENT,
                    moved=str(move.mark),
                    reason=move.reason,
                )
            )
        elif free and move.key is None:
            homeless.append(free[0])
    return Moves(releases=tuple(releases), homeless=tuple(homeless))


@dataclass(frozen=True, slots=True, kw_only=True)
class Moves:
    """What one run moves."""

    releases: tuple[Release, ...] = ()
    homeless: tuple[Pod, ...] = ()
    """Pods that would return to spot, and that the scheduler leads to no spot node that there is."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Move:
    """A workload of which one pod is to stand elsewhere.

    Its fullest group stands more than one pod above its emptiest. Or it has pods on spot that must not stand there: a
    single replica, while the spot group of single replicas is closed, a workload whose next pods are let to on-demand
    nodes only, or one below its floor with pods on closed groups. Or no spread leads its pods, and they return to spot.
    """

    workload: Workload
    key: str | None
    """The label over which it is spread; None: over none."""
    movable: Sequence[Pod]
    """Those of its pods that may be moved, the first choice first."""
    to_on_demand: bool = False
    """Whether it lacks pods on on-demand."""
    lands: Callable[[Node], bool]
    """Whether a node is one to which its pods are moved."""
    mark: Mark
    """Of the pod that is moved."""
    reason: str


def in_drawn_order(moves: Iterable[Move], now: datetime) -> Sequence[Move]:
    """Return moves in an order that the time decides, those to on-demand first."""
    return sorted(
        moves,
        key=lambda move: (not move.to_on_demand, crc32(f"{now}{move.workload.ref}".encode())),
    )


def settled_pods(seen: Observation, workload: Workload) -> Sequence[Pod]:
    """Return the pods of a workload that stay, where all its replicas serve and nothing changes it now; else none."""
    serving = seen.serving.get(workload.ref, ())
    if len(serving) != workload.replicas or workload.rolling_out or workload.paused:
        return ()
    staying = sum(pod.deleting is None for pod in seen.of_workload[workload.ref]) if serving else 0
    return serving if staying == len(serving) else ()


def uneven(
    seen: Observation,
    spread: Mapping[Layout, Sequence[Workload]],
    groups: Sequence[SpreadGroup],
    now: datetime,
    pinned: Sequence[Workload] = (),
) -> Sequence[Move]:
    """Return the moves of workloads whose fullest group stands more than one pod above their emptiest.

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
    found = (_unevenness(seen, w, opened, now) for opened, workloads in every for w in workloads)
    return in_drawn_order((move for move in found if move is not None), now)


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


def _unevenness(
    seen: Observation, workload: Workload, opened: _OpenGroups, now: datetime
) -> Move | None:
    pods, layout, key = settled_pods(seen, workload), opened.layout, opened.key
    group_of = opened.group_of
    # Counted first: mostly few workloads are uneven, and the pods of those alone are looked at one by one.
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
        and (reason := _why_to_on_demand(seen, layout, len(apart), pods)) is not None
    ):
        fullest, emptiest, movable = SPOT, ON_DEMAND, apart
    elif standing:
        fullest = max(standing, key=standing.__getitem__)
        emptiest = min(standing, key=standing.__getitem__)
        most, least = standing[fullest], standing[emptiest]
        if most - least <= 1 or _is_even(standing):
            return None
        # Pods on closed spot groups are not counted here: the open groups can be uneven while the floor is just kept.
        to_spot = on_demand_group(fullest) and not on_demand_group(emptiest)
        if to_spot and _on_demand(seen, pods) <= layout.floor(len(pods)):
            return None
        there = [pod for pod in pods if group_of.get(pod.node) == fullest]
        movable = sorted(there, key=attrgetter("name"))
        reason = f"{most} of its pods stand on {fullest} and {least} on {emptiest}"
    else:
        return None
    mark = next_mark(fullest, movable, now)
    if mark is None:
        return None
    return Move(
        workload=workload,
        key=key,
        movable=movable,
        to_on_demand=on_demand_group(emptiest),
        lands=lambda node: node.labels.get(key) != fullest,
        mark=mark,
        reason=reason,
    )


def _on_demand(seen: Observation, pods: Sequence[Pod]) -> int:
    return [*map(seen.capacities.get, [pod.node for pod in pods])].count(ON_DEMAND)


def _why_to_on_demand(
    seen: Observation, layout: Layout, apart: int, pods: Sequence[Pod]
) -> str | None:
    """Say why pods on spot nodes of no open group must not stay there; None where they may."""
    if layout == NO_GROUPS:
        return "all its replicas must stand on on-demand"
    if layout == SINGLE_REPLICA:
        return "it is a single replica, and the on-demand reserve may not take it later"
    on_demand = _on_demand(seen, pods)
    if on_demand < layout.floor(len(pods)):
        return f"{on_demand} of its pods stand on on-demand and {apart} on closed spot groups"
    return None


def _is_even(counts: Mapping[str, int]) -> bool:
    """Whether groups hold even shares if those of on-demand are taken together: a move between these keeps no floor."""
    spot = [count for name, count in counts.items() if not on_demand_group(name)]
    on_demand = sum(counts.values()) - sum(spot)
    groups = len(counts) - len(spot)
    shares: list[int] = [*spot, *((on_demand // groups, -(-on_demand // groups)) if groups else ())]
    return max(shares) - min(shares) <= 1


def _free(seen: Observation, move: Move, now: datetime) -> Sequence[Pod]:
    """Return the pods of a move that nothing protects."""
    return [
        pod
        for pod in move.movable
        if pod.owner is not None
        and why_protected(pod, seen.node.get(pod.node or ""), now) is None
        and why_not_released(seen, move.workload, pod, {}) is None
    ]


def _lands(snapshot: ClusterSnapshot, pod: Pod, move: Move) -> bool:
    """Whether the replacement of a released pod fits, and where it is meant to; keeps its place if so."""
    where = pod.node or ""
    replacement = released_in(snapshot, pod)
    if move.key is not None:
        replacement = as_injected(replacement, move.key)
    node = snapshot.choose(replacement)
    if node is None or not move.lands(node):
        snapshot.place(pod, where)
        return False
    snapshot.place(replacement, node.name)
    return True


def released_in(snapshot: ClusterSnapshot, pod: Pod) -> Pod:
    """Let a pod stand as released, and return its replacement."""
    labels = {name: value for name, value in pod.labels.items() if name != POD_TEMPLATE_HASH}
    snapshot.place(replace(pod, labels=labels), pod.node or "")
    return replacement_of(pod)
