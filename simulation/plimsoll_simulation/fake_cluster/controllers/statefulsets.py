"""StatefulSets: pods with an ordinal that come, go and change one after another.

An ordinal is made again only after the object of the old pod is gone, so a pod that terminates
slowly, or hangs on a node that vanished, keeps its place empty. With OrderedReady nothing else
happens to the set meanwhile.

Source: k8s.io/kubernetes/pkg/controller/statefulset/stateful_set_control.go (1.37);
https://kubernetes.io/docs/concepts/workloads/controllers/statefulset/
Below the partition of an update an ordinal is made anew from the template it had.

Left out: ControllerRevision objects (which template was when is remembered here), the strategy Recreate
(off by default), retention policies of claims, start ordinals.
"""

from __future__ import annotations

from datetime import datetime
from typing import ClassVar, override

from plimsoll.domain.kubernetes import resolve_count
from plimsoll_simulation.fake_cluster.conditions import (
    availability,
    available_at,
    controller_of,
    is_deleting,
    is_finished,
    is_ready,
)
from plimsoll_simulation.fake_cluster.controllers.base import Controller
from plimsoll_simulation.fake_cluster.controllers.templates import pod_of, template_hash
from plimsoll_simulation.fake_cluster.edits import Json, look, put
from plimsoll_simulation.fake_cluster.state import ClusterState
from plimsoll_simulation.fake_cluster.store import Change, Key, key_of

_REVISION = "controller-revision-hash"


class StatefulSets(Controller[Key]):
    """The StatefulSet controller."""

    watches: ClassVar = frozenset({"statefulsets", "pods"})

    def __init__(self, state: ClusterState) -> None:
        super().__init__(state)
        self._templates: dict[str, dict[str, Json]] = {}
        """UID -> revision -> the template it stands for."""

    @override
    def observe(self, change: Change) -> None:
        if change.resource == "statefulsets":
            if change.type == "DELETED":
                self._templates.pop(change.object["metadata"]["uid"], None)
            self.note(change.key)
        elif (owner := controller_of(change.object)) and owner["kind"] == "StatefulSet":
            self.note((change.key[0], owner["name"]))

    @override
    def reconcile(self, key: Key, now: datetime) -> None:
        stateful = self.store.get("statefulsets", *key)
        if stateful is None:
            return
        uid = stateful["metadata"]["uid"]
        pods = {_ordinal(p): p for p in self.state.indexes.owned(uid, "pods")}
        template = stateful["spec"]["template"]
        update = f"{key[1]}-{template_hash(template)}"
        self._templates.setdefault(uid, {})[update] = template
        self._report(key, stateful, pods, update, now)
        wanted = range(stateful["spec"]["replicas"])
        ordered = stateful["spec"]["podManagementPolicy"] == "OrderedReady"
        if self._fill(key, stateful, pods, update, now):
            return
        if self._condemn(key, stateful, [pods[i] for i in sorted(pods) if i not in wanted], now):
            return
        if ordered or all(i in pods for i in wanted):
            self._update(key, stateful, pods, update, now)

    def _fill(
        self, key: Key, stateful: Json, pods: dict[int, Json], update: str, now: datetime
    ) -> bool:
        """Make what is missing; return whether the set must wait. Source: processReplica."""
        ordered = stateful["spec"]["podManagementPolicy"] == "OrderedReady"
        for ordinal in range(stateful["spec"]["replicas"]):
            pod = pods.get(ordinal)
            if pod is not None and is_finished(pod):
                if not is_deleting(pod):
                    self.delete(pod, now)
                if ordered:
                    return True
            elif pod is None:
                self._create(*self._version(stateful, ordinal, update), ordinal, now)
                if ordered:
                    return True
            elif ordered and not self._stands(key, stateful, pod, now):
                return True
        return False

    def _condemn(self, key: Key, stateful: Json, condemned: list[Json], now: datetime) -> bool:
        """Take the highest ordinals away. Source: processCondemned."""
        ordered = stateful["spec"]["podManagementPolicy"] == "OrderedReady"
        ailing = [p for p in condemned if not self._stands(key, stateful, p, now)]
        first_ailing = ailing[0]["metadata"]["name"] if ailing else None
        for pod in reversed(condemned):
            if is_deleting(pod):
                if ordered:
                    return True
                continue
            stands = self._stands(key, stateful, pod, now)
            if ordered and not stands and pod["metadata"]["name"] != first_ailing:
                return True
            self.delete(pod, now)
            if ordered:
                return True
        return False

    def _update(
        self, key: Key, stateful: Json, pods: dict[int, Json], update: str, now: datetime
    ) -> None:
        """Bring the highest outdated ordinals up to date, while few enough are unavailable.

        A Parallel set first takes the outdated that are unavailable anyway, whatever the budget says.
        Source: updateStatefulSetAfterInvariantEstablished.
        """
        spec = stateful["spec"]
        if spec["updateStrategy"]["type"] == "OnDelete":
            return
        rolling = spec["updateStrategy"].get("rollingUpdate", {})
        members = [pods[i] for i in reversed(range(spec["replicas"])) if i in pods]
        standing = {id(p) for p in members if self._stands(key, stateful, p, now)}
        budget = _budget(rolling, spec["replicas"]) - (len(members) - len(standing))
        outdated = [
            pod
            for pod in members
            if _ordinal(pod) >= rolling.get("partition", 0)
            and pod["metadata"]["labels"].get(_REVISION) != update
            and not is_deleting(pod)
        ]
        if spec["podManagementPolicy"] == "Parallel":
            for pod in outdated:
                if id(pod) not in standing:
                    self.delete(pod, now)
            outdated = [pod for pod in outdated if id(pod) in standing]
        for pod in outdated[: max(budget, 0)]:
            self.delete(pod, now)

    def _stands(self, key: Key, stateful: Json, pod: Json, now: datetime) -> bool:
        """Whether a pod is available and not on its way out; looks again when it will be."""
        least = look(stateful, "spec", "minReadySeconds", default=0)
        at = available_at(pod, least)
        if is_deleting(pod) or at is None:
            return False
        if least and at > now:
            self.state.timers.write(at, lambda _: self.note(key))
            return False
        return True

    def _version(self, stateful: Json, ordinal: int, update: str) -> tuple[Json, str]:
        """Return the set as an ordinal is made from, and its revision.

        Source: newVersionedStatefulSetPod.
        """
        rolling = look(stateful, "spec", "updateStrategy", "rollingUpdate", default={})
        # From the store: the status may have been written a moment ago.
        status = self.store.must_get("statefulsets", *key_of(stateful)).get("status") or {}
        current = status.get("currentRevision", update)
        if ordinal >= rolling.get("partition", 0) or current == update:
            return stateful, update
        template = self._templates[stateful["metadata"]["uid"]].get(current)
        if template is None:
            return stateful, update
        return put(stateful, ("spec", "template"), template), current

    def _create(self, stateful: Json, revision: str, ordinal: int, now: datetime) -> None:
        name = f"{stateful['metadata']['name']}-{ordinal}"
        identity = {
            "statefulset.kubernetes.io/pod-name": name,
            "apps.kubernetes.io/pod-index": str(ordinal),
            _REVISION: revision,
        }
        pod = pod_of(stateful, labels=identity)
        pod["metadata"]["name"] = name
        templates = look(stateful, "spec", "volumeClaimTemplates", default=())
        claims = {t["metadata"]["name"]: f"{t['metadata']['name']}-{name}" for t in templates}
        own = [v for v in look(pod, "spec", "volumes", default=()) if v["name"] not in claims]
        mounted = [
            {"name": volume, "persistentVolumeClaim": {"claimName": claim}}
            for volume, claim in claims.items()
        ]
        pod["spec"] = {**pod["spec"], "volumes": [*mounted, *own], "hostname": name}
        namespace = stateful["metadata"]["namespace"]
        for template in templates:
            claim = claims[template["metadata"]["name"]]
            if self.store.get("persistentvolumeclaims", namespace, claim) is None:
                meta = {**template["metadata"], "name": claim, "namespace": namespace}
                made = {"metadata": meta, "spec": template.get("spec") or {}}
                self.create("persistentvolumeclaims", made, now)
        self.create("pods", pod, now)

    def _report(
        self, key: Key, stateful: Json, pods: dict[int, Json], update: str, now: datetime
    ) -> None:
        replicas = stateful["spec"]["replicas"]
        staying = [p for p in pods.values() if not is_deleting(p)]
        ready = sum(1 for p in pods.values() if is_ready(p))
        updated = sum(1 for p in staying if p["metadata"]["labels"].get(_REVISION) == update)
        current = look(stateful, "status", "currentRevision", default=update)
        if updated == replicas == ready == len(pods):
            current = update
        least = look(stateful, "spec", "minReadySeconds", default=0)
        available, later = availability(pods.values(), least, now)
        if later is not None:
            self.state.timers.write(later, lambda _: self.note(key))
        status = {
            "observedGeneration": stateful["metadata"]["generation"],
            "replicas": len(pods),
            "readyReplicas": ready,
            "availableReplicas": available,
            "currentReplicas": sum(
                1 for p in staying if p["metadata"]["labels"].get(_REVISION) == current
            ),
            "updatedReplicas": updated,
            "currentRevision": current,
            "updateRevision": update,
            "collisionCount": 0,
        }
        self.store.replace("statefulsets", put(stateful, ("status",), status), now=now)


def _budget(rolling: Json, replicas: int) -> int:
    """Return how many members may be unavailable. Source: getStatefulSetMaxUnavailable."""
    return max(resolve_count(rolling.get("maxUnavailable", 1), replicas, round_up=False), 1)


def _ordinal(pod: Json) -> int:
    return int(pod["metadata"]["name"].rpartition("-")[2])
