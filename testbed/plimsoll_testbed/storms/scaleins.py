"""Judges the scale-in after a count was restored: its controller must delete the right pods.

A controller chooses pods later and by its own rules, so the write itself cannot be judged. Every
pod that the controller deletes for it is judged in the instant of its deletion.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from plimsoll.domain.names import INTERRUPTION
from plimsoll_testbed.measure.measure import Measurement
from plimsoll_testbed.measure.workload_metrics import WorkloadId, WorkloadMetrics
from plimsoll_testbed.model.hollow.conditions import (
    controller_of,
    is_deleting,
    is_ready,
    is_true,
)
from plimsoll_testbed.model.hollow.store import Change
from plimsoll_testbed.rigs.simulated.rig_cluster import HollowRigCluster
from plimsoll_testbed.storms.writes import GENERATIONS, KINDS, Write


class ScaleIns:
    """Follows the pods of one cluster after counts that the responder has lowered."""

    def __init__(
        self,
        rig_cluster: HollowRigCluster,
        measurement: Measurement,
        note: Callable[[str, str], None],
    ) -> None:
        self._rig_cluster, self._measurement, self._note = rig_cluster, measurement, note
        self._owed: dict[WorkloadId, int] = {}
        """How many pods a controller is yet to delete because of the responder."""
        self._by_request = False
        """Whether a request changes a pod just now, and not a controller."""
        rig_cluster.cluster.on_pod_change(self._changed)

    @contextmanager
    def during(self, write: Write, *, ours: bool) -> Iterator[None]:
        """Follow any write: a count that the responder lowers, or that its owner declares anew."""
        before = self._count(write)
        self._by_request = write.target.resource.plural == "pods"
        try:
            yield
        finally:
            self._by_request = False
        now = self._count(write)
        if before is not None and now is not None and now != before:
            kind = KINDS[write.target.resource.plural]
            key = (self._rig_cluster.name, write.target.namespace or "", kind, write.name)
            self._owed[key] = max(0, before - now) if ours else 0

    def _count(self, write: Write) -> int | None:
        plural, namespace = write.target.resource.plural, write.target.namespace or ""
        found = self._rig_cluster.cluster.store.get(plural, namespace, write.name)
        return found["spec"].get("replicas") if found and plural in KINDS else None

    def _changed(self, change: Change) -> None:
        before, pod = change.before, change.object
        if self._by_request or before is None or is_deleting(before):
            return
        if change.type != "DELETED" and not is_deleting(pod):
            return
        metrics = self._metrics(pod)
        if metrics is None or not self._owed.get(metrics.id) or is_true(pod, "DisruptionTarget"):
            return  # preemption, or the death of its node, and no scale-in
        self._owed[metrics.id] -= 1
        if is_ready(before):
            self._judge(before, metrics)

    def _judge(self, pod: dict[str, Any], metrics: WorkloadMetrics) -> None:
        mates = [
            other
            for other in self._rig_cluster.cluster.store.all("pods")
            if not is_deleting(other)
            and other["metadata"]["uid"] != pod["metadata"]["uid"]
            and (found := self._metrics(other)) is not None
            and found.id == metrics.id
        ]
        if len({_generation(p) for p in (*mates, pod)}) > 1:
            return  # a rollout deletes pods as well, and nothing tells them apart
        name = pod["metadata"]["name"]
        ready = sum(is_ready(mate) for mate in mates)
        if ready < metrics.replicas:
            what = f"{name} was deleted, and {ready} of {metrics.replicas} are Ready without it"
            self._note("dropped-by-count", what)
        if not self._interrupted(pod) and any(self._interrupted(mate) for mate in mates):
            self._note(
                "took-another", f"{name} was deleted, and pods on interrupted nodes were kept"
            )

    def _interrupted(self, pod: dict[str, Any]) -> bool:
        node = self._rig_cluster.cluster.store.get("nodes", "", pod["spec"].get("nodeName") or "")
        return node is not None and INTERRUPTION in (node["metadata"].get("annotations") or {})

    def _metrics(self, pod: dict[str, Any]) -> WorkloadMetrics | None:
        """Return the metrics of the workload that a pod belongs to."""
        namespace = pod["metadata"]["namespace"]
        owner = controller_of(pod)
        if owner is not None and owner["kind"] == "ReplicaSet":
            above = self._rig_cluster.cluster.store.get("replicasets", namespace, owner["name"])
            owner = (None if above is None else controller_of(above)) or owner
        if owner is None:
            return None
        key = (self._rig_cluster.name, namespace, owner["kind"], owner["name"])
        return self._measurement.workload_metrics.get(key)


def _generation(pod: dict[str, Any]) -> str | None:
    labels = pod["metadata"].get("labels") or {}
    return next((labels[key] for key in GENERATIONS if key in labels), None)
