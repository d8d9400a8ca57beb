"""What etcd and the API server's storage keep: objects, versions, and the log of changes.

An object is a plain JSON dict and is never changed after it was stored, so readers get the stored
object itself. A write that changes nothing is no write: no new version, nobody told.

Sources: https://kubernetes.io/docs/reference/using-api/api-concepts/#resource-versions,
k8s.io/apiserver/pkg/registry/generic/registry/store.go
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime

from plimsoll_simulation.fake_cluster.edits import Json
from plimsoll_simulation.fake_cluster.identities import Identities
from plimsoll_simulation.fake_cluster.refusals import (
    STALE,
    already_exists,
    conflict,
    expired,
    not_found,
)
from plimsoll_simulation.fake_cluster.resources import BY_PLURAL, TABLE
from plimsoll_simulation.fake_cluster.stamps import stamp

type Key = tuple[str, str]
"""(namespace, name); the namespace of a cluster-wide object is empty."""

_KEPT = 20_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """One change of one object."""

    type: str
    """ADDED, MODIFIED or DELETED, as a watch names it."""
    resource: str
    """The plural, for example `pods`."""
    object: Json
    """As it is now; for DELETED as it last was, with the version of its deletion."""
    before: Json | None
    revision: int
    at: datetime

    @property
    def key(self) -> Key:
        """Namespace and name."""
        return key_of(self.object)


def key_of(obj: Json) -> Key:
    """Return the key of an object."""
    meta = obj["metadata"]
    return meta.get("namespace") or "", meta["name"]


class Store:
    """All objects of one cluster."""

    def __init__(self, identities: Identities) -> None:
        self.identities = identities
        self._objects: dict[str, dict[Key, Json]] = {r.plural: {} for r in TABLE}
        self._sorted: dict[str, list[Key] | None] = {r.plural: None for r in TABLE}
        self._subscribers: list[Callable[[Change], None]] = []
        self._log: deque[Change] = deque(maxlen=_KEPT)
        self.revision = 1
        """The version of the newest change, counted over all objects as in etcd."""

    def subscribe(self, subscriber: Callable[[Change], None]) -> None:
        """Call back on every change, in order, before the write returns.

        Subscribers must not write: they note what to do and do it later.
        """
        self._subscribers.append(subscriber)

    def get(self, resource: str, namespace: str, name: str) -> Json | None:
        """Return an object, or None."""
        return self._objects[resource].get((namespace, name))

    def must_get(self, resource: str, namespace: str, name: str) -> Json:
        """Return an object.

        Raises:
            RefusedError: 404, it does not exist.
        """
        found = self._objects[resource].get((namespace, name))
        if found is None:
            raise not_found(BY_PLURAL[resource], name)
        return found

    def all(self, resource: str, namespace: str | None = None) -> Iterator[Json]:
        """Yield the objects of a kind in the order of their keys, as etcd lists them."""
        objects = self._objects[resource]
        for key in self.keys(resource, namespace):
            yield objects[key]

    def keys(
        self, resource: str, namespace: str | None = None, *, after: Key | None = None
    ) -> Sequence[Key]:
        """Return the keys of a kind in their order, where asked only those behind another."""
        keys = self._sorted[resource]
        if keys is None:
            keys = self._sorted[resource] = sorted(self._objects[resource])
        first, last = 0, len(keys)
        if namespace is not None:
            first = bisect_left(keys, (namespace, ""))
            last = bisect_left(keys, (f"{namespace}\0", ""))
        if after is not None:
            first = bisect_right(keys, after, first, last)
        return keys if (first, last) == (0, len(keys)) else keys[first:last]

    def count(self, resource: str) -> int:
        """Return how many objects of a kind there are."""
        return len(self._objects[resource])

    def create(self, resource: str, obj: Json, *, now: datetime) -> Json:
        """Store a new object and return it with its UID, version and time of creation.

        Raises:
            RefusedError: 409, the name is taken.
        """
        line = BY_PLURAL[resource]
        key = key_of(obj)
        if key in self._objects[resource]:
            raise already_exists(line, key[1])
        meta = {
            **obj["metadata"],
            "uid": self.identities.uid(),
            "creationTimestamp": stamp(now),
        }
        if line.generation:
            meta["generation"] = 1
        new = {"apiVersion": line.api_version, "kind": line.kind, **obj, "metadata": meta}
        return self._write("ADDED", resource, new, now)

    def replace(self, resource: str, obj: Json, *, now: datetime) -> Json:
        """Store a new state of an object; what the server owns in its metadata stays.

        One that is deleted goes with its last finalizer.

        Raises:
            RefusedError: 404; 409 when `obj` carries a version that is not the newest.
        """
        line = BY_PLURAL[resource]
        key = key_of(obj)
        before = self.must_get(resource, *key)
        old, meta = before["metadata"], obj["metadata"]
        version = meta.get("resourceVersion")
        if version and version != old["resourceVersion"]:
            raise conflict(line, key[1], STALE)
        if meta.get("uid", old["uid"]) != old["uid"]:
            why = f"Precondition failed: UID in precondition: {meta['uid']}, UID in object meta: {old['uid']}"
            raise conflict(line, key[1], why)
        if meta is not old:
            owned = {k: old[k] for k in ("uid", "creationTimestamp", "resourceVersion")}
            meta = {**meta, **owned}
        spec = obj.get("spec")
        if line.generation:
            changed = spec is not before.get("spec") and spec != before.get("spec")
            # A pod is bound without a new generation: what is counted is what its owner wants.
            count = changed and resource != "pods"
            meta = {**meta, "generation": old.get("generation", 1) + count}
        new = {**obj, "apiVersion": line.api_version, "kind": line.kind, "metadata": meta}
        if new == before:
            return before
        let_go = old.get("finalizers") and not meta.get("finalizers")
        kind = "DELETED" if let_go and meta.get("deletionGracePeriodSeconds") == 0 else "MODIFIED"
        return self._write(kind, resource, new, now)

    def remove(self, resource: str, namespace: str, name: str, *, now: datetime) -> Json:
        """Take an object out and return its last state.

        Raises:
            RefusedError: 404.
        """
        return self._write("DELETED", resource, self.must_get(resource, namespace, name), now)

    def since(self, revision: int, resource: str) -> Sequence[Change]:
        """Return the changes of a kind after a revision, oldest first.

        Raises:
            RefusedError: 410, changes that old are no longer kept.
        """
        if self._log and len(self._log) == _KEPT and revision < self._log[0].revision - 1:
            raise expired(self._log[0].revision, revision)
        newer: list[Change] = []
        for change in reversed(self._log):
            if change.revision <= revision:
                break
            if change.resource == resource:
                newer.append(change)
        newer.reverse()
        return newer

    def _write(self, kind: str, resource: str, obj: Json, now: datetime) -> Json:
        self.revision += 1
        stored = {
            **obj,
            "metadata": {**obj["metadata"], "resourceVersion": str(self.revision)},
        }
        self._keep(kind, resource, stored, now)
        return stored

    def _keep(self, kind: str, resource: str, obj: Json, now: datetime) -> None:
        """Take in a change of an object, and tell it."""
        objects, key = self._objects[resource], key_of(obj)
        change = Change(
            type=kind,
            resource=resource,
            object=obj,
            before=objects.get(key),
            revision=self.revision,
            at=now,
        )
        if kind != "MODIFIED":
            self._sorted[resource] = None
        if kind == "DELETED":
            del objects[key]
        else:
            objects[key] = obj
        self._log.append(change)
        for subscriber in self._subscribers:
            subscriber(change)
