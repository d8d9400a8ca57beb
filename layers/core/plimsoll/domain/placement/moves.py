"""Voluntary moves: one pod of a workload goes to the emptiest of its spread groups, by release.

They repair an on-demand floor that scale-in or a lost node broke, and bring pods back to spot after
a storm. Both are one rule: the fullest open group stands more than one pod above the emptiest, which
the scheduler would not have allowed. Each move makes that smaller, so moves end.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Final

from plimsoll.domain.actions import Release
from plimsoll.domain.capacity import replacement_of
from plimsoll.domain.fit import ClusterSnapshot
from plimsoll.domain.names import POD_TEMPLATE_HASH, RELEASED_FOR_PLACEMENT
from plimsoll.domain.observation import Observation
from plimsoll.domain.placement.node_labels import SpreadGroup
from plimsoll.domain.placement.spread_groups import label_key
from plimsoll.domain.pods import Pod
from plimsoll.domain.quantities import Resources
from plimsoll.domain.replace.eligibility import why_not_released
from plimsoll.domain.workloads import Workload

AT_ONCE: Final = 10
"""Moves of one run, over all workloads: with a run every five minutes at most 120 an hour."""


def why_not_now(seen: Observation) -> str | None:
    """Say what forbids any voluntary move in a cluster now; None where nothing does."""
    for node in seen.nodes:
        found = node.interruption
        if found is not None and found.deadline is not None and found.phase != "closed":
            return f"node {node.name} is interrupted"
    waiting = next((pod for pod in seen.pods if pod.pending), None)
    return None if waiting is None else f"pod {waiting} is Pending"


def plan_moves(
    seen: Observation,
    spread: Mapping[int, Sequence[Workload]],
    groups: Sequence[SpreadGroup],
) -> Iterator[Release]:
    """Yield the moves of one run: at most one pod of each workload, and only where it provably fits.

    Args:
        seen: one observation of the cluster, in which nothing forbids moves.
        spread: number of spot groups -> the workloads whose templates are spread over so many.
        groups: the spread groups, open and closed.
    """
    snapshot = ClusterSnapshot(seen.nodes, seen.pods, seen.claims)
    moved = 0
    for spot_groups, workloads in sorted(spread.items()):
        open_names = {g.name for g in groups if g.spot_groups == spot_groups and g.opened}
        for workload in sorted(workloads, key=lambda w: w.ref):
            if moved == AT_ONCE:
                return
            move = _move(seen, snapshot, workload, label_key(spot_groups), open_names)
            if move is not None:
                moved += 1
                yield move


def _move(
    seen: Observation,
    snapshot: ClusterSnapshot,
    workload: Workload,
    key: str,
    open_names: set[str],
) -> Release | None:
    pods = seen.of_workload.get(workload.ref, ())
    settled = len(pods) == workload.replicas and all(p.serving and not p.released for p in pods)
    if workload.rolling_out or workload.paused or not settled:
        return None
    standing: dict[str, list[Pod]] = {name: [] for name in open_names}
    for pod in pods:
        group = _group(seen, pod, key)
        if group in standing:
            standing[group].append(pod)
    if not standing:
        return None
    fullest = max(sorted(standing), key=lambda name: len(standing[name]))
    emptiest = min(sorted(standing), key=lambda name: len(standing[name]))
    if len(standing[fullest]) - len(standing[emptiest]) <= 1:
        return None
    for pod in sorted(standing[fullest], key=lambda p: p.name):
        if (
            pod.owner is not None
            and why_not_released(seen, workload, pod, Resources()) is None
            and _lands_elsewhere(snapshot, pod, key, fullest)
        ):
            return Release(
                pod=pod,
                replica_set=seen.replica_sets[pod.owner],
                interruption=RELEASED_FOR_PLACEMENT,
                reason=f"{len(standing[fullest])} of its pods stand on {fullest} and "
                f"{len(standing[emptiest])} on {emptiest}",
            )
    return None


def _group(seen: Observation, pod: Pod, key: str) -> str | None:
    node = None if pod.node is None else seen.node.get(pod.node)
    return None if node is None else node.labels.get(key)


def _lands_elsewhere(snapshot: ClusterSnapshot, pod: Pod, key: str, fullest: str) -> bool:
    """Whether the replacement of a released pod fits, and in another group; keeps its place if so."""
    labels = {name: value for name, value in pod.labels.items() if name != POD_TEMPLATE_HASH}
    where = pod.node or ""
    snapshot.place(replace(pod, labels=labels), where)
    replacement = replacement_of(pod)
    node = snapshot.choose(replacement)
    if node is None or node.labels.get(key) == fullest:
        snapshot.place(pod, where)
        return False
    snapshot.place(replacement, node.name)
    return True
