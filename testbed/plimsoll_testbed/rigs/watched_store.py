"""The objects of an API server as its watches showed them, with the look-ups of the model's store.

While the API server is down they are what was shown last, as for everybody who watches.
"""

from __future__ import annotations

from collections import deque
from datetime import datetime

from plimsoll_simulation.fake_cluster.edits import Json
from plimsoll_simulation.fake_cluster.identities import Identities
from plimsoll_simulation.fake_cluster.store import Store, key_of


class WatchedStore(Store):
    """A store that only watches change. It is not locked: whoever shares it between threads does that."""

    def __init__(self) -> None:
        super().__init__(Identities(0))
        self._log = deque(maxlen=0)  # nobody watches this store itself

    def show(self, resource: str, change: str, obj: Json, *, now: datetime) -> None:
        """Take in what a watch showed: ADDED, MODIFIED or DELETED, and the object."""
        before = self.get(resource, *key_of(obj))
        known = before is not None and before["metadata"]["uid"] == obj["metadata"]["uid"]
        if change == "DELETED":
            if known:
                self._keep("DELETED", resource, obj, now)
            return
        if before is not None and not known:  # its end is told late, or never
            self._keep("DELETED", resource, before, now)
        self._keep("MODIFIED" if known else "ADDED", resource, obj, now)
