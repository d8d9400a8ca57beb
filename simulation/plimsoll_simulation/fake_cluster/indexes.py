"""Look-ups over the store, kept up to date change by change so that nothing is ever searched."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence

from plimsoll_simulation.fake_cluster.edits import Json, look
from plimsoll_simulation.fake_cluster.store import Change, Key, Store


class Indexes:
    """Pods by node, objects by the UIDs of their owners, pods by the claim they mount."""

    def __init__(self, store: Store) -> None:
        self._on_node: defaultdict[str, dict[Key, Json]] = defaultdict(dict)
        self._owned: defaultdict[str, dict[tuple[str, Key], Json]] = defaultdict(dict)
        self._beside: defaultdict[str, dict[tuple[str, Key], Json]] = defaultdict(dict)
        self._mounting: defaultdict[Key, dict[Key, Json]] = defaultdict(dict)
        store.subscribe(self._follow)

    def on_node(self, node: str) -> Sequence[Json]:
        """Return the pods bound to a node, in the order in which they were bound."""
        return tuple(self._on_node.get(node, {}).values())

    def owned(self, uid: str, resource: str) -> Sequence[Json]:
        """Return the objects of a kind whose controller has this UID, oldest first."""
        return tuple(o for (kind, _), o in self._owned.get(uid, {}).items() if kind == resource)

    def dependents(self, uid: str) -> Sequence[tuple[str, Key]]:
        """Return (plural, key) of everything of which an owner has this UID."""
        return (*self._owned.get(uid, {}), *self._beside.get(uid, {}))

    def mounting(self, claim: Key) -> Sequence[Json]:
        """Return the pods that mount a claim."""
        return tuple(self._mounting.get(claim, {}).values())

    def _follow(self, change: Change) -> None:
        key = change.key
        obj = None if change.type == "DELETED" else change.object
        for controls, index in ((True, self._owned), (False, self._beside)):
            owners = _owners(change.object, controls=controls)
            if change.before is not None:
                for uid in _owners(change.before, controls=controls) - owners:
                    _keep(index, uid, (change.resource, key), None)
            for uid in owners:
                _keep(index, uid, (change.resource, key), obj)
        if change.resource != "pods":
            return
        if node := look(change.object, "spec", "nodeName"):
            _keep(self._on_node, node, key, obj)
        for name in claims_of(change.object):
            _keep(self._mounting, (key[0], name), key, obj)


def _owners(obj: Json, *, controls: bool) -> set[str]:
    """Return the UIDs of an object's controller, or of its other owners."""
    references = obj["metadata"].get("ownerReferences") or ()
    return {owner["uid"] for owner in references if bool(owner.get("controller")) is controls}


def claims_of(pod: Json) -> tuple[str, ...]:
    """Return the names of the claims that a pod mounts."""
    return tuple(
        volume["persistentVolumeClaim"]["claimName"]
        for volume in look(pod, "spec", "volumes", default=())
        if "persistentVolumeClaim" in volume
    )


def _keep[A, B](index: dict[A, dict[B, Json]], outer: A, inner: B, obj: Json | None) -> None:
    if obj is not None:
        index[outer][inner] = obj
    elif outer in index:
        index[outer].pop(inner, None)
        if not index[outer]:
            del index[outer]
