"""Deployments: one ReplicaSet for each pod template, and the way from one to the next.

Source: k8s.io/kubernetes/pkg/controller/deployment;
https://kubernetes.io/docs/concepts/workloads/controllers/deployment/
Left out: progress deadlines, adoption, hash collisions, terminatingReplicas.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import ClassVar, override

from plimsoll_simulation.fake_cluster.conditions import (
    condition,
    controller_of,
    is_finished,
    reference,
    with_condition,
)
from plimsoll_simulation.fake_cluster.controllers.base import Controller
from plimsoll_simulation.fake_cluster.controllers.rollouts import (
    Bounds,
    Share,
    bounds_of,
    grown,
    least_available,
    proportional,
    shrunk,
)
from plimsoll_simulation.fake_cluster.controllers.templates import template_hash
from plimsoll_simulation.fake_cluster.edits import Json, look, put
from plimsoll_simulation.fake_cluster.state import ClusterState
from plimsoll_simulation.fake_cluster.store import Change, Key, key_of

_HASH = "pod-template-hash"
_REVISION = "deployment.kubernetes.io/revision"
_DESIRED = "deployment.kubernetes.io/desired-replicas"
_MOST = "deployment.kubernetes.io/max-replicas"


class Deployments(Controller[Key]):
    """The Deployment controller."""

    watches: ClassVar = frozenset({"deployments", "replicasets", "pods"})

    def __init__(self, state: ClusterState) -> None:
        super().__init__(state)
        self._hashes: dict[str, tuple[int, str]] = {}
        """UID -> (generation, hash of its template)."""

    @override
    def observe(self, change: Change) -> None:
        match change.resource:
            case "deployments":
                self.note(change.key)
            case "replicasets":
                self._note_owner(change.object)
            case "pods" if change.type == "DELETED":  # Recreate waits for the last old pod
                owner = controller_of(change.object)
                if owner is not None and owner["kind"] == "ReplicaSet":
                    parent = self.store.get("replicasets", change.key[0], owner["name"])
                    if parent is not None:
                        self._note_owner(parent)
            case _:
                pass

    @override
    def reconcile(self, key: Key, now: datetime) -> None:
        deployment = self.store.get("deployments", *key)
        if deployment is None:
            return
        sets = list(self.state.indexes.owned(deployment["metadata"]["uid"], "replicasets"))
        current = self._hash(deployment)
        new = next((s for s in sets if s["metadata"]["labels"].get(_HASH) == current), None)
        old = [s for s in sets if s is not new]
        bounds = bounds_of(deployment)
        deployment = self._pause(deployment, now)
        rolling = not (_scaled(deployment, sets) or look(deployment, "spec", "paused"))
        if not rolling:
            self._scale(deployment, new, old, bounds, now)
        elif look(deployment, "spec", "strategy", "type") == "Recreate":
            self._recreate(deployment, new, old, bounds, now)
        else:
            self._roll(deployment, new, old, bounds, now)
        self._report(deployment, current, now, rolling=rolling)

    def _pause(self, deployment: Json, now: datetime) -> Json:
        """Say that a Deployment was paused, or resumed. Source: checkPausedConditions."""
        paused = bool(look(deployment, "spec", "paused"))
        known = condition(deployment, "Progressing")
        if paused is (known is not None and known.get("reason") == "DeploymentPaused"):
            return deployment
        why = "DeploymentPaused" if paused else "DeploymentResumed"
        told = with_condition(deployment, "Progressing", "Unknown", now=now, reason=why)
        return self.store.replace("deployments", told, now=now)

    def _roll(
        self, deployment: Json, new: Json | None, old: list[Json], bounds: Bounds, now: datetime
    ) -> None:
        new = self._newest(deployment, new, old, now)
        mine, others = _share(new), [_share(s) for s in old]
        wanted = grown(mine, [mine, *others], bounds)
        if self._resize(deployment, new, wanted, now):
            return
        sizes = shrunk(mine, [s for s in others if s.replicas], bounds)
        for each in old:
            self._resize(deployment, each, sizes.get(each["metadata"]["name"], 0), now)
        self._clean(deployment, old, now)

    def _recreate(
        self, deployment: Json, new: Json | None, old: list[Json], bounds: Bounds, now: datetime
    ) -> None:
        resized = [self._resize(deployment, each, 0, now) for each in old]
        if any(resized):
            return
        for each in old:
            pods = self.state.indexes.owned(each["metadata"]["uid"], "pods")
            if any(not is_finished(pod) for pod in pods):
                return
        new = self._newest(deployment, new, old, now)
        self._resize(deployment, new, bounds.replicas, now)
        self._clean(deployment, old, now)

    def _scale(
        self, deployment: Json, new: Json | None, old: list[Json], bounds: Bounds, now: datetime
    ) -> None:
        """Follow a changed `replicas` without moving the rollout on. Source: sync.go, scale."""
        sets = [*old, *([new] if new is not None else [])]
        active = [s for s in sets if s["spec"]["replicas"]]
        if len(active) <= 1:
            only = active[0] if active else (sets[-1] if sets else None)
            if only is not None:
                self._resize(deployment, only, bounds.replicas, now)
            return
        newest = list(reversed(active))
        growing = bounds.most > sum(s["spec"]["replicas"] for s in active)
        order = sorted(newest if growing else active, key=lambda s: -s["spec"]["replicas"])
        if look(deployment, "spec", "strategy", "type") == "Recreate":
            return
        before = look(deployment, "status", "replicas", default=0)
        sizes = proportional([_share(s) for s in order], bounds, before)
        for each in order:
            self._resize(deployment, each, sizes[each["metadata"]["name"]], now)

    def _newest(self, deployment: Json, new: Json | None, old: list[Json], now: datetime) -> Json:
        """Return the ReplicaSet of the present template, made where there is none."""
        revision = 1 + max((_revision(s) for s in old), default=0)
        if new is not None:
            if _revision(new) < revision and old:
                annotations = {**new["metadata"]["annotations"], _REVISION: str(revision)}
                new = put(new, ("metadata", "annotations"), annotations)
                new = self.store.replace("replicasets", new, now=now)
            return new
        spec, meta = deployment["spec"], deployment["metadata"]
        label = {_HASH: self._hash(deployment)}
        template = spec["template"]
        labels = {**template["metadata"]["labels"], **label}
        made: Json = {
            "metadata": {
                "name": f"{meta['name']}-{label[_HASH]}",
                "namespace": meta["namespace"],
                "labels": labels,
                "annotations": {_REVISION: str(revision)},
                "ownerReferences": [reference(deployment)],
            },
            "spec": {
                "replicas": 0,
                "minReadySeconds": spec.get("minReadySeconds", 0),
                "selector": put(
                    spec["selector"],
                    ("matchLabels",),
                    {**(spec["selector"].get("matchLabels") or {}), **label},
                ),
                "template": put(template, ("metadata", "labels"), labels),
            },
        }
        deployment = self.store.must_get("deployments", *key_of(deployment))
        why = "NewReplicaSetCreated"
        told = with_condition(deployment, "Progressing", "True", now=now, reason=why)
        self.store.replace("deployments", told, now=now)
        return self.create("replicasets", made, now)

    def _resize(self, deployment: Json, each: Json, size: int, now: datetime) -> bool:
        """Set a ReplicaSet's size and what it was reckoned from; return whether the size changed."""
        bounds = bounds_of(deployment)
        said = {_DESIRED: str(bounds.replicas), _MOST: str(bounds.most)}
        annotations = {**each["metadata"].get("annotations", {}), **said}
        changed = put(
            put(each, ("spec", "replicas"), size), ("metadata", "annotations"), annotations
        )
        self.store.replace("replicasets", changed, now=now)
        return bool(size != each["spec"]["replicas"])

    def _clean(self, deployment: Json, old: list[Json], now: datetime) -> None:
        """Forget the oldest empty ReplicaSets beyond revisionHistoryLimit."""
        limit = look(deployment, "spec", "revisionHistoryLimit", default=10)
        empty = [s for s in old if not s["spec"]["replicas"] and not look(s, "status", "replicas")]
        for each in empty[: max(0, len(empty) - limit)]:
            self.delete(each, now, "replicasets")

    def _report(self, deployment: Json, current: str, now: datetime, *, rolling: bool) -> None:
        """Write the status; only a rollout that is looked at says how it gets on."""
        deployment = self.store.must_get("deployments", *key_of(deployment))
        sets = self.state.indexes.owned(deployment["metadata"]["uid"], "replicasets")
        new = [s for s in sets if s["metadata"]["labels"].get(_HASH) == current]
        available = _sum(sets, "availableReplicas")
        counts = {
            "observedGeneration": deployment["metadata"]["generation"],
            "replicas": _sum(sets, "replicas"),
            "updatedReplicas": _sum(new, "replicas"),
            "readyReplicas": _sum(sets, "readyReplicas"),
            "availableReplicas": available,
            "unavailableReplicas": max(0, sum(s["spec"]["replicas"] for s in sets) - available),
        }
        before = deployment.get("status") or {}
        conditions = before.get("conditions") or []
        reported = put(deployment, ("status",), {**counts, "conditions": conditions})
        enough = available >= least_available(deployment)
        reported = with_condition(
            reported,
            "Available",
            "True" if enough else "False",
            now=now,
            reason="MinimumReplicasAvailable" if enough else "MinimumReplicasUnavailable",
        )
        reported = _with_failure(reported, [*new, *sets], now)
        if rolling and (why := _progress(reported, before)) is not None:
            reported = with_condition(reported, "Progressing", "True", now=now, reason=why)
        if new:
            annotations = reported["metadata"].get("annotations") or {}
            annotations = {**annotations, _REVISION: str(_revision(new[0]))}
            reported = put(reported, ("metadata", "annotations"), annotations)
        self.store.replace("deployments", reported, now=now)

    def _hash(self, deployment: Json) -> str:
        uid, generation = deployment["metadata"]["uid"], deployment["metadata"]["generation"]
        kept = self._hashes.get(uid)
        if kept is None or kept[0] != generation:
            kept = generation, template_hash(deployment["spec"]["template"])
            self._hashes[uid] = kept
        return kept[1]

    def _note_owner(self, replicaset: Json) -> None:
        owner = controller_of(replicaset)
        if owner is not None and owner["kind"] == "Deployment":
            self.note((replicaset["metadata"]["namespace"], owner["name"]))


def _with_failure(deployment: Json, sets: Sequence[Json], now: datetime) -> Json:
    """Return a Deployment that says whether a ReplicaSet of its cannot make pods. Source: replicaSetToDeploymentCondition."""
    failed = next((found for s in sets if (found := condition(s, "ReplicaFailure"))), None)
    if failed is not None:
        said = {k: failed.get(k) for k in ("reason", "message")}
        return with_condition(deployment, "ReplicaFailure", failed["status"], now=now, **said)
    kept = [c for c in deployment["status"]["conditions"] if c["type"] != "ReplicaFailure"]
    return put(deployment, ("status", "conditions"), kept)


def _progress(deployment: Json, before: Json) -> str | None:
    """Say how a rollout gets on; None where nothing moved. Source: syncRolloutStatus."""
    status, known = deployment["status"], condition(deployment, "Progressing")
    wanted = deployment["spec"]["replicas"]
    complete = "NewReplicaSetAvailable"
    updated, total, available = (
        status[f] for f in ("updatedReplicas", "replicas", "availableReplicas")
    )
    if total == updated and known is not None and known.get("reason") == complete:
        return None
    if updated == total == available == wanted:
        return complete
    old = total - updated
    old_before = before.get("replicas", 0) - before.get("updatedReplicas", 0)
    moved = (
        updated > before.get("updatedReplicas", 0)
        or old < old_before
        or status["readyReplicas"] > before.get("readyReplicas", 0)
        or available > before.get("availableReplicas", 0)
    )
    return "ReplicaSetUpdated" if moved else None


def _scaled(deployment: Json, sets: list[Json]) -> bool:
    """Whether `replicas` changed since a ReplicaSet was last sized. Source: isScalingEvent."""
    wanted = str(deployment["spec"]["replicas"])
    return any(
        s["metadata"]["annotations"].get(_DESIRED, wanted) != wanted
        for s in sets
        if s["spec"]["replicas"]
    )


def _share(each: Json) -> Share:
    replicas = each["spec"]["replicas"]
    return Share(
        name=each["metadata"]["name"],
        replicas=replicas,
        # What is above `replicas` goes as soon as its controller has seen that.
        available=min(replicas, look(each, "status", "availableReplicas", default=0)),
        most_before=int(each["metadata"].get("annotations", {}).get(_MOST, "0")),
    )


def _revision(each: Json) -> int:
    return int(each["metadata"].get("annotations", {}).get(_REVISION, "0"))


def _sum(sets: Sequence[Json], field: str) -> int:
    return sum(look(s, "status", field, default=0) for s in sets)
