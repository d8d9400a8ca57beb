"""ReplicaSets: as many active pods as wanted.

A pod that is going, or has finished, does not count, so its replacement is made when it is told to
go and not when it is gone.

Source: k8s.io/kubernetes/pkg/controller/replicaset/replica_set.go;
https://kubernetes.io/docs/concepts/workloads/controllers/replicaset/
Left out: adoption of pods without an owner, the slow start of creations.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from typing import ClassVar, override

from plimsoll_simulation.fake_cluster.conditions import (
    availability,
    controller_of,
    is_active,
    is_ready,
    is_true,
    with_condition,
)
from plimsoll_simulation.fake_cluster.controllers.base import Controller
from plimsoll_simulation.fake_cluster.controllers.scalein import first_to_go
from plimsoll_simulation.fake_cluster.controllers.templates import pod_of
from plimsoll_simulation.fake_cluster.edits import Json, look, put
from plimsoll_simulation.fake_cluster.refusals import RefusedError
from plimsoll_simulation.fake_cluster.store import Change, Key


class ReplicaSets(Controller[Key]):
    """The ReplicaSet controller."""

    watches: ClassVar = frozenset({"replicasets", "pods"})

    @override
    def observe(self, change: Change) -> None:
        if change.resource == "replicasets":
            self.note(change.key)
            return
        for pod in (change.object, change.before):  # a pod may be handed to another owner
            owner = None if pod is None else controller_of(pod)
            if owner is not None and owner["kind"] == "ReplicaSet":
                self.note((change.key[0], owner["name"]))

    @override
    def reconcile(self, key: Key, now: datetime) -> None:
        replicaset = self.store.get("replicasets", *key)
        if replicaset is None:
            return
        pods = [p for p in self._pods(replicaset) if is_active(p)]
        excess = len(pods) - replicaset["spec"]["replicas"]
        if excess < 0:
            for _ in range(-excess):
                pod = pod_of(replicaset, suffix=self.state.identities.suffix())
                self.create("pods", pod, now)
        elif excess > 0:
            related = [p for p in self._related(replicaset) if is_active(p)]
            for pod in first_to_go(pods, related, excess, now):
                self.delete(pod, now)
        if excess:  # its own changes bring it back here, to see what is now
            return
        self._report(key, replicaset, pods, now)

    @override
    def refused(self, key: Key, refused: RefusedError, now: datetime) -> None:
        told = replicaset = self.store.must_get("replicasets", *key)
        if not is_true(replicaset, "ReplicaFailure"):  # else the words stay those of the first
            told = with_condition(
                replicaset,
                "ReplicaFailure",
                "True",
                now=now,
                reason="FailedCreate",
                message=str(refused),
            )
        pods = [p for p in self._pods(replicaset) if is_active(p)]
        self._report(key, told, pods, now, failed=True)

    def _pods(self, owner: Json) -> Iterable[Json]:
        return self.state.indexes.owned(owner["metadata"]["uid"], "pods")

    def _related(self, replicaset: Json) -> Iterable[Json]:
        """Return what counts as colocated: nothing where no Deployment stands above.

        Source: getReplicaSetsWithSameController.
        """
        owner = controller_of(replicaset)
        if owner is None:
            return ()
        sets = self.state.indexes.owned(owner["uid"], "replicasets")
        return [pod for each in sets for pod in self._pods(each)]

    def _report(
        self, key: Key, replicaset: Json, pods: list[Json], now: datetime, *, failed: bool = False
    ) -> None:
        least = look(replicaset, "spec", "minReadySeconds", default=0)
        available, later = availability(pods, least, now)
        if later is not None:
            self.state.timers.write(later, lambda _: self.note(key))
        status = {
            **({"conditions": replicaset["status"]["conditions"]} if failed else {}),
            "replicas": len(pods),
            "fullyLabeledReplicas": len(pods),
            "readyReplicas": sum(1 for pod in pods if is_ready(pod)),
            "availableReplicas": available,
            "observedGeneration": replicaset["metadata"]["generation"],
        }
        self.store.replace("replicasets", put(replicaset, ("status",), status), now=now)
