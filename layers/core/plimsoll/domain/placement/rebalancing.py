"""Voluntary moves: one pod of a workload goes to the emptiest of its spread groups, by release.

They repair an on-demand floor that scale-in or a lost node broke, and bring pods back to spot after
a storm. Both are one rule: the fullest open group stands more than one pod above the emptiest, which
the scheduler would not have allowed. Each move makes that smaller, so moves end. One that did not,
since its replacement came back, is followed by a pause, longer each time: see `plimsoll.domain.placement.move_history`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
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
    waiting = next((pod for pod in seen.pods if pod.pending and pod.created > young), None)
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


def is_settled(workload: Workload, pods: Sequence[Pod]) -> bool:
    """Whether all replicas of a workload serve, and nothing changes it now."""
    return (
        len(pods) == workload.replicas
        and not (workload.rolling_out or workload.paused)
        and all(pod.serving and not pod.released for pod in pods)
    )


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
    every: list[tuple[Workload, Layout, set[str]]] = [(w, NO_GROUPS, {ON_DEMAND}) for w in pinned]
    for layout, workloads in spread.items():
        open_names = {g.name for g in groups if g.layout == layout and g.opened}
        every += [(w, layout, open_names) for w in workloads]
    found = (_unevenness(seen, w, layout, open_names, now) for w, layout, open_names in every)
    return in_drawn_order((move for move in found if move is not None), now)


def _unevenness(
    seen: Observation, workload: Workload, layout: Layout, open_names: set[str], now: datetime
) -> Move | None:
    pods = [pod for pod in seen.of_workload.get(workload.ref, ()) if pod.deleting is None]
    if not is_settled(workload, pods):
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
        # Pods on closed spot groups are not counted here: the open groups can be uneven while the floor is just kept.
        to_spot = on_demand_group(fullest) and not on_demand_group(emptiest)
        if to_spot and on_demand <= layout.floor(len(pods)):
            return None
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
