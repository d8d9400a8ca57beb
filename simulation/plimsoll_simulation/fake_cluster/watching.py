"""Watches: the changes of a collection as lines of JSON, from a version on.

An object that no longer passes the selectors is DELETED to this watcher, one that begins to is
ADDED. A watch from a version that is no longer kept gets one ERROR with 410, as the API server's
watch cache does it.

Source: https://kubernetes.io/docs/reference/using-api/api-concepts/#efficient-detection-of-changes
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import datetime

from plimsoll_simulation.fake_cluster.edits import Json
from plimsoll_simulation.fake_cluster.queries import test_of
from plimsoll_simulation.fake_cluster.refusals import RefusedError
from plimsoll_simulation.fake_cluster.routes import Target
from plimsoll_simulation.fake_cluster.store import Change, Store


class Watch:
    """One watch: ask it from time to time what is new."""

    def __init__(self, store: Store, target: Target, query: Mapping[str, str]) -> None:
        """Begin at the version in the query; without one, with what there is.

        Raises:
            RefusedError: 400, a selector is wrong.
        """
        self._store = store
        self._target = target
        self._passes = test_of(target.resource.plural, query)
        asked = query.get("resourceVersion") or "0"
        self._fresh = asked == "0"
        self._revision = store.revision if self._fresh else int(asked)
        self.over = False
        """An ERROR was told: nothing more comes."""

    @property
    def bookmark(self) -> Json:
        """Return the event that tells a client up to which version it has seen everything."""
        line = self._target.resource
        meta = {"resourceVersion": str(self._revision)}
        obj = {"kind": line.kind, "apiVersion": line.api_version, "metadata": meta}
        return {"type": "BOOKMARK", "object": obj}

    def news(self, until: datetime | None = None) -> Iterator[Json]:
        """Yield the events since the last time; of changes after `until` only the next time."""
        if self._fresh:
            self._fresh = False
            self._revision = self._store.revision
            for obj in self._store.all(self._target.resource.plural):
                if self._mine(obj):
                    yield {"type": "ADDED", "object": obj}
        try:
            changes = self._store.since(self._revision, self._target.resource.plural)
        except RefusedError as refused:
            self.over = True
            yield {"type": "ERROR", "object": refused.status}
            return
        late = [c.revision for c in changes if until is not None and c.at > until]
        self._revision = min(late, default=self._store.revision + 1) - 1
        for change in changes:
            if change.revision <= self._revision and (kind := self._kind(change)):
                yield {"type": kind, "object": change.object}

    def _mine(self, obj: Json) -> bool:
        target, meta = self._target, obj["metadata"]
        if target.namespace is not None and meta.get("namespace") != target.namespace:
            return False
        return target.name in {None, meta["name"]} and self._passes(obj)

    def _kind(self, change: Change) -> str | None:
        was = change.before is not None and self._mine(change.before)
        now = change.type != "DELETED" and self._mine(change.object)
        if was and now:
            return "MODIFIED"
        if now:
            return "ADDED"
        return "DELETED" if was else None
