"""Judges what a count that we put back does: its controller takes pods, and they must be the right.

A controller takes pods later and by its own rules, so nothing can be said when the count is
written: every pod that it takes for it is judged in the instant in which it is told to go.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from plimsoll.domain.names import INTERRUPTION
from plimsoll_testbed.measure.measure import Measurement
from plimsoll_testbed.measure.workload_metrics import WorkloadId, WorkloadMetrics
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
        """How many pods a controller is yet to take because of us."""
        self._asked_for = False
        """Whether it is a request about a pod that changes it just now, and no controller."""
        rig_cluster.cluster.on_pod_change(self._changed)

    @contextmanager
    def during(self, write: Write, *, ours: bool) -> Iterator[None]:
        """Look at a write of anybody: a count that we lower, an owner's word that ends ours."""
        before = self._count(write)
        self._asked_for = write.target.resource.plural == "pods"
        try:
            yield
        finally:
            self._asked_for = False
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
        if self._asked_for or before is None or "deletionTimestamp" in before["metadata"]:
            return
        if change.type != "DELETED" and "deletionTimestamp" not in pod["metadata"]:
            return
        metrics = self._metrics(pod)
        if metrics is None or not self._owed.get(metrics.id) or _disrupted(pod):
            return
        self._owed[metrics.id] -= 1
        if _ready(before):
            self._judge(before, metrics)

    def _judge(self, pod: dict[str, Any], metrics: WorkloadMetrics) -> None:
        mates = [
            other
            for other in self._rig_cluster.cluster.store.all("pods")
            if "deletionTimestamp" not in other["metadata"]
            and other["metadata"]["uid"] != pod["metadata"]["uid"]
            and (found := self._metrics(other)) is not None
            and found.id == metrics.id
        ]
        if len({_generation(p) for p in (*mates, pod)}) > 1:
            return  # a rollout takes pods as well, and nobody can tell whose each is
        name = pod["metadata"]["name"]
        ready = sum(_ready(mate) for mate in mates)
        if ready < metrics.replicas:
            what = f"{name} was taken, and {ready} of {metrics.replicas} are Ready without it"
            self._note("dropped-by-count", what)
        if not self._doomed(pod) and any(self._doomed(mate) for mate in mates):
            self._note("took-another", f"{name} was taken, and pods on nodes that go were left")

    def _doomed(self, pod: dict[str, Any]) -> bool:
        node = self._rig_cluster.cluster.store.get("nodes", "", pod["spec"].get("nodeName") or "")
        return node is not None and INTERRUPTION in (node["metadata"].get("annotations") or {})

    def _metrics(self, pod: dict[str, Any]) -> WorkloadMetrics | None:
        """Return the account of the workload that a pod belongs to."""
        namespace = pod["metadata"]["namespace"]
        owner = _controller(pod)
        if owner is not None and owner["kind"] == "ReplicaSet":
            above = self._rig_cluster.cluster.store.get("replicasets", namespace, owner["name"])
            owner = (None if above is None else _controller(above)) or owner
        if owner is None:
            return None
        key = (self._rig_cluster.name, namespace, owner["kind"], owner["name"])
        return self._measurement.workload_metrics.get(key)


def _controller(obj: dict[str, Any]) -> dict[str, Any] | None:
    owners = obj["metadata"].get("ownerReferences", ())
    return next((owner for owner in owners if owner.get("controller")), None)


def _generation(pod: dict[str, Any]) -> str | None:
    labels = pod["metadata"].get("labels") or {}
    return next((labels[key] for key in GENERATIONS if key in labels), None)


def _ready(pod: dict[str, Any]) -> bool:
    return any(
        condition["type"] == "Ready" and condition["status"] == "True"
        for condition in pod.get("status", {}).get("conditions", ())
    )


def _disrupted(pod: dict[str, Any]) -> bool:
    """Whether it goes for another reason than its controller's count: preemption, or its node."""
    return any(
        condition["type"] == "DisruptionTarget" and condition["status"] == "True"
        for condition in pod.get("status", {}).get("conditions", ())
    )
