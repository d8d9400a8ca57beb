"""Whether every pod stands where the predicates allow it, and none waits that has a place.

The scheduler chooses freely among the nodes that fit, so where its pods stand cannot be compared
node by node. But each of its choices, and each pod that it leaves waiting, is a verdict on the
predicates of `plimsoll.domain.scheduling.cluster_snapshot`, the same that plans are made with.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from plimsoll.adapters.kubernetes.objects import parse_node, parse_pod
from plimsoll.domain.kubernetes import Pod
from plimsoll.domain.scheduling import ClusterSnapshot
from plimsoll_simulation.fake_cluster.conditions import is_deleting, is_finished
from plimsoll_simulation.fake_cluster.edits import Json, look
from tests.differential.sides import Seen

MISPLACED: Final = "pods that stand where they do not fit"
IDLE: Final = "pods that wait and fit"
LAWS: Final = frozenset({MISPLACED, IDLE})
"""What must be nothing on both sides, whatever was chosen."""


class Placements:
    """Remembers where the pods of a scenario stood when it last looked."""

    def __init__(self) -> None:
        self._stood: dict[str, str] = {}
        self._stand: dict[str, str] = {}

    def keep(self) -> None:
        """Hold what the last look found for the next ones to begin with."""
        self._stood = self._stand

    def look(
        self,
        nodes: Sequence[Json],
        pods: Sequence[Json],
        claims: Sequence[Json],
        changes: Sequence[Seen],
    ) -> dict[str, Any]:
        """Return what breaks the predicates: nothing, where both sides agree."""
        if claims:  # volumes are told by their scenarios
            return {}
        standing = [p for p in pods if look(p, "spec", "nodeName") and not is_finished(p)]
        waiting = [p for p in pods if not look(p, "spec", "nodeName") and not is_finished(p)]
        snapshot = ClusterSnapshot(map(parse_node, nodes), [])
        fresh: list[Pod] = []
        for obj in standing:
            pod = parse_pod(obj)
            if self._stood.get(pod.uid) == pod.node or pod.node not in snapshot.nodes:
                self._place(snapshot, pod)
            else:
                fresh.append(pod)
        self._stand = {p["metadata"]["uid"]: p["spec"]["nodeName"] for p in standing}
        left = any(
            seen.resource == "pods" and (seen.type == "DELETED" or is_deleting(seen.object))
            for seen in changes
        )
        wrong = [] if left else _misplaced(snapshot, fresh)
        for pod in fresh:
            self._place(snapshot, pod)
        idle = [
            pod["metadata"]["name"]
            for pod in waiting
            if not look(pod, "status", "nominatedNodeName") and snapshot.candidates(parse_pod(pod))
        ]
        return {MISPLACED: wrong, IDLE: len(idle)}

    @staticmethod
    def _place(snapshot: ClusterSnapshot, pod: Pod) -> None:
        if pod.node is not None and pod.node in snapshot.nodes:
            snapshot.place(pod, pod.node)


def _misplaced(snapshot: ClusterSnapshot, pods: Sequence[Pod]) -> list[str]:
    """Place the pods in any order in which each fits when its turn comes; return who never does."""
    left = list(pods)
    while left:
        fitting = next(
            (p for p in left if p.node and snapshot.why_not(p, snapshot.nodes[p.node]) is None),
            None,
        )
        if fitting is None:
            return sorted(
                f"{p.node}: {snapshot.why_not(p, snapshot.nodes[p.node])}" for p in left if p.node
            )
        left.remove(fitting)
        snapshot.place(fitting, fitting.node or "")
    return []
