"""Garbage collection: what has no owner left goes, and what stood in a namespace.

Source: https://kubernetes.io/docs/concepts/architecture/garbage-collection/#cascading-deletion
Left out: foreground deletion (it is done in the background), owners that never were, the phase
Terminating of a namespace.
"""

from __future__ import annotations

from datetime import datetime
from typing import ClassVar, override

from plimsoll_simulation.fake_cluster.controllers.base import Controller
from plimsoll_simulation.fake_cluster.resources import BY_PLURAL, TABLE
from plimsoll_simulation.fake_cluster.store import Change

type Gone = tuple[str, str]
"""(plural, UID) of what is gone; of a namespace its name."""


class Garbage(Controller[Gone]):
    """The garbage collector and the namespace controller."""

    watches: ClassVar = frozenset(BY_PLURAL)

    @override
    def observe(self, change: Change) -> None:
        if change.type != "DELETED":
            return
        meta = change.object["metadata"]
        if change.resource == "namespaces":
            self.note((change.resource, meta["name"]))
        elif self.state.indexes.dependents(meta["uid"]):
            self.note((change.resource, meta["uid"]))

    @override
    def reconcile(self, key: Gone, now: datetime) -> None:
        plural, which = key
        if plural == "namespaces":
            for line in TABLE:
                for obj in list(self.store.all(line.plural, which)) if line.namespaced else ():
                    self.delete(obj, now, line.plural)
            return
        for resource, name in self.state.indexes.dependents(which):
            found = self.store.get(resource, *name)
            if found is None:
                continue
            meta = found["metadata"]
            if left := [owner for owner in meta["ownerReferences"] if owner["uid"] != which]:
                kept = {**found, "metadata": {**meta, "ownerReferences": left}}
                self.store.replace(resource, kept, now=now)
            else:
                self.delete(found, now, resource)
