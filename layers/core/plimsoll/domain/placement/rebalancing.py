"""Voluntary moves: one pod of a workload stands elsewhere, by release. `unevenness` and `spot_return` say which.

A move that changed nothing, since the replacement came back, is followed by a pause, longer each time: see
`plimsoll.domain.placement.move_history`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from itertools import islice
from typing import Final
from zlib import crc32

from plimsoll.domain.actions import Release
from plimsoll.domain.disruptions import why_not_released
from plimsoll.domain.interruptions import NEAR
from plimsoll.domain.kubernetes import (
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
from plimsoll.domain.placement.move_history import Mark, moves_within_hour
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
    return seen.policy.moves(len(seen.pods)) - moves_within_hour(seen, now)


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
    snapshot = ClusterSnapshot(seen.nodes, seen.bound, seen.claims)
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
    lands: Callable[[Node], bool]
    """Whether a node is one to which its pods are moved."""
    mark: Mark
    """Of the pod that is moved."""
    reason: str


def drawn_order(now: datetime) -> Callable[[Workload], int]:
    """Return a sort key that puts workloads in an order which the time decides."""
    drawn = str(now)
    return lambda workload: crc32(f"{drawn}{workload.ref}".encode())


def settled_pods(seen: Observation, workload: Workload) -> Sequence[Pod]:
    """Return the pods of a workload that stay, where all its replicas serve and nothing changes it now; else none."""
    serving = seen.serving.get(workload.ref, ())
    if len(serving) != workload.replicas or workload.rolling_out or workload.paused or not serving:
        return ()
    there = seen.of_workload[workload.ref]
    if len(there) == len(serving):  # mostly so: then no pod need be asked
        return serving
    staying = sum(pod.deleting is None for pod in there)
    return serving if staying == len(serving) else ()


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
