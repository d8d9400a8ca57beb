"""Voluntary moves: one pod of a workload goes to the emptiest of its spread groups, by release.

They repair an on-demand floor that scale-in or a lost node broke, and bring pods back to spot after
a storm. Both are one rule: the fullest open group stands more than one pod above the emptiest, which
the scheduler would not have allowed. Each move makes that smaller, so moves end. One that did not,
since its replacement came back, is followed by a pause, longer each time: see `plimsoll.domain.placement.move_history`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from itertools import islice
from typing import Final
from zlib import crc32

from plimsoll.domain.actions import Release
from plimsoll.domain.disruptions import why_not_released
from plimsoll.domain.interruptions import NEAR
from plimsoll.domain.kubernetes import (
    CAPACITY_LABELS,
    POD_TEMPLATE_HASH,
    RELEASED_FOR_PLACEMENT,
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
    waiting = next((pod for pod in seen.pods if pod.pending and pod.created > young), None)
    if waiting is not None:
        return f"pod {waiting} is Pending"
    if _left(seen, now) < 1:
        return f"{seen.policy.moves(len(seen.pods))} pods were moved within the hour"
    return None


def _left(seen: Observation, now: datetime) -> int:
    """Return what is left of the budget of the cluster."""
    return seen.policy.moves(len(seen.pods)) - moves_within_hour(seen.of_workload.values(), now)


def plan_moves(
    seen: Observation,
    spread: Mapping[Layout, Sequence[Workload]],
    groups: Sequence[SpreadGroup],
    now: datetime,
    pinned: Sequence[Workload] = (),
) -> Iterator[Release]:
    """Yield the moves of one run: at most one pod of each workload, and only where it provably fits.

    Workloads that stand too seldom on on-demand come first. The others are in an order that the time
    decides, so that those whose pods fit nowhere do not hold the rest back.

    Args:
        seen: one observation of the cluster, in which nothing forbids moves.
        spread: layout -> the workloads whose next pods are spread so.
        pinned: workloads whose next pods are let to on-demand nodes only.
        groups: the spread groups, open and closed.
        now: the time of the observation.
    """
    waiting = [*_all_uneven(seen, spread, groups, now, pinned)]
    if not waiting:
        return  # a snapshot of a large cluster takes seconds
    waiting.sort(
        key=lambda u: (not on_demand_group(u.emptiest), crc32(f"{now}{u.workload.ref}".encode()))
    )
    snapshot = ClusterSnapshot(seen.nodes, seen.pods, seen.claims)
    moves = (_move(seen, snapshot, uneven, now) for uneven in waiting[:TRIED_WORKLOADS])
    found = (move for move in moves if move is not None)
    yield from islice(found, min(MOST_MOVES, max(0, _left(seen, now))))


@dataclass(frozen=True, slots=True, kw_only=True)
class Unevenness:
    """A workload whose fullest group stands more than one pod above its emptiest.

    Or one with pods on spot that must not stand there: a single replica, while the spot group of single
    replicas is closed, a workload whose next pods are let to on-demand nodes only, or one below its floor with pods
    on closed groups.
    """

    workload: Workload
    key: str
    """The label over which it is spread."""
    movable: Sequence[Pod]
    """Its pods in the fullest group."""
    fullest: str
    emptiest: str
    mark: Mark
    """Of the pod that is moved."""
    reason: str


def _all_uneven(
    seen: Observation,
    spread: Mapping[Layout, Sequence[Workload]],
    groups: Sequence[SpreadGroup],
    now: datetime,
    pinned: Sequence[Workload],
) -> Iterator[Unevenness]:
    every: list[tuple[Workload, Layout, set[str]]] = [(w, NO_GROUPS, {ON_DEMAND}) for w in pinned]
    for layout, workloads in spread.items():
        open_names = {g.name for g in groups if g.layout == layout and g.opened}
        every += [(w, layout, open_names) for w in workloads]
    found = (_unevenness(seen, w, layout, open_names, now) for w, layout, open_names in every)
    return (uneven for uneven in found if uneven is not None)


def _unevenness(
    seen: Observation, workload: Workload, layout: Layout, open_names: set[str], now: datetime
) -> Unevenness | None:
    pods = [pod for pod in seen.of_workload.get(workload.ref, ()) if pod.deleting is None]
    settled = len(pods) == workload.replicas and all(p.serving and not p.released for p in pods)
    if workload.rolling_out or workload.paused or not settled:
        return None
    key = CAPACITY_LABELS[0] if layout == NO_GROUPS else label_key(layout)
    standing: dict[str, list[Pod]] = {name: [] for name in sorted(open_names)}
    apart, on_demand = [], 0
    for pod in pods:
        node = seen.node.get(pod.node or "")
        group = None if node is None else node.labels.get(key)
        on_demand += node is not None and node.capacity == ON_DEMAND
        if group in standing:
            standing[group].append(pod)
        elif node is not None and node.capacity == SPOT:
            apart.append(pod)
    if (
        apart
        and any(map(on_demand_group, standing))
        and (reason := _why_to_on_demand(layout, len(apart), len(pods), on_demand)) is not None
    ):
        fullest, emptiest, movable = SPOT, ON_DEMAND, apart
    elif standing:
        fullest = max(standing, key=lambda name: len(standing[name]))
        emptiest = min(standing, key=lambda name: len(standing[name]))
        movable = sorted(standing[fullest], key=lambda p: p.name)
        most, least = len(movable), len(standing[emptiest])
        if most - least <= 1 or _is_even({name: len(pods) for name, pods in standing.items()}):
            return None
        reason = f"{most} of its pods stand on {fullest} and {least} on {emptiest}"
    else:
        return None
    mark = next_mark(fullest, movable, now)
    if mark is None:
        return None
    return Unevenness(
        workload=workload,
        key=key,
        movable=movable,
        fullest=fullest,
        emptiest=emptiest,
        mark=mark,
        reason=reason,
    )


def _why_to_on_demand(layout: Layout, apart: int, pods: int, on_demand: int) -> str | None:
    """Say why pods on spot nodes of no open group must not stay there; None where they may."""
    if layout == NO_GROUPS:
        return "all its replicas must stand on on-demand"
    if layout == SINGLE_REPLICA:
        return "it is a single replica, and the on-demand reserve may not take it later"
    if on_demand < layout.floor(pods):
        return f"{on_demand} of its pods stand on on-demand and {apart} on closed spot groups"
    return None


def _is_even(counts: Mapping[str, int]) -> bool:
    """Whether groups hold even shares if those of on-demand are taken together: a move between these keeps no floor."""
    spot = [count for name, count in counts.items() if not on_demand_group(name)]
    on_demand = sum(counts.values()) - sum(spot)
    groups = len(counts) - len(spot)
    shares: list[int] = [*spot, *((on_demand // groups, -(-on_demand // groups)) if groups else ())]
    return max(shares) - min(shares) <= 1


def _move(
    seen: Observation, snapshot: ClusterSnapshot, uneven: Unevenness, now: datetime
) -> Release | None:
    for pod in uneven.movable:
        if (
            pod.owner is not None
            and why_protected(pod, seen.node.get(pod.node or ""), now) is None
            and why_not_released(seen, uneven.workload, pod, {}) is None
            and _lands_elsewhere(snapshot, pod, uneven.key, uneven.fullest)
        ):
            return Release(
                pod=pod,
                replica_set=seen.replica_sets[pod.owner],
                interruption=RELEASED_FOR_PLACEMENT,
                moved=str(uneven.mark),
                reason=uneven.reason,
            )
    return None


def _lands_elsewhere(snapshot: ClusterSnapshot, pod: Pod, key: str, fullest: str) -> bool:
    """Whether the replacement of a released pod fits, and in another group; keeps its place if so."""
    labels = {name: value for name, value in pod.labels.items() if name != POD_TEMPLATE_HASH}
    where = pod.node or ""
    snapshot.place(replace(pod, labels=labels), where)
    replacement = as_injected(replacement_of(pod), key)
    node = snapshot.choose(replacement)
    if node is None or node.labels.get(key) == fullest:
        snapshot.place(pod, where)
        return False
    snapshot.place(replacement, node.name)
    return True
