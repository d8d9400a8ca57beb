"""Garbage collection: what an object owned goes after it.

Source: https://kubernetes.io/docs/concepts/architecture/garbage-collection/#cascading-deletion
Left out: foreground deletion (it is done in the background), owners that are not controllers.
"""

from __future__ import annotations

from datetime import datetime
from typing import ClassVar, override

from plimsoll.hollow.controllers.base import Controller
from plimsoll.hollow.deletion import DeleteOptions, delete
from plimsoll.hollow.resources import BY_PLURAL
from plimsoll.hollow.store import Change


class Garbage(Controller[str]):
    """The garbage collector, by the UID of what is gone."""

    watches: ClassVar = frozenset(BY_PLURAL)

    @override
    def observe(self, change: Change) -> None:
        if change.type == "DELETED":
            uid = change.object["metadata"]["uid"]
            if self.world.indexes.dependents(uid):
                self.note(uid)

    @override
    def reconcile(self, key: str, now: datetime) -> None:
        for resource, name in self.world.indexes.dependents(key):
            obj = self.store.get(resource, *name)
            if obj is not None:
                delete(self.store, resource, obj, DeleteOptions(), now=now)
