"""What a controller is: it notes which keys changed, and later puts each in order.

As in Kubernetes a controller is level-triggered: it looks at what is, not at what happened, so
several changes of one key cost one look. Nothing runs while nothing changes.

Source: https://kubernetes.io/docs/concepts/architecture/controller/
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Hashable
from datetime import datetime
from typing import ClassVar

from plimsoll_simulation.fake_cluster.admission import admitted
from plimsoll_simulation.fake_cluster.conditions import with_condition
from plimsoll_simulation.fake_cluster.deletion import DeleteOptions, delete
from plimsoll_simulation.fake_cluster.edits import Json
from plimsoll_simulation.fake_cluster.resources import BY_PLURAL
from plimsoll_simulation.fake_cluster.state import ClusterState
from plimsoll_simulation.fake_cluster.store import Change


class Controller[K: Hashable](ABC):
    """A queue of keys without repetition, in the order in which they were first noted."""

    watches: ClassVar[frozenset[str]]
    """The plurals whose changes `observe` is shown."""

    def __init__(self, state: ClusterState) -> None:
        self.state = state
        self.store = state.store
        self._dirty: dict[K, None] = {}

    @property
    def busy(self) -> bool:
        """Whether something waits to be put in order."""
        return bool(self._dirty)

    def note(self, key: K) -> None:
        """Remember that a key needs a look."""
        self._dirty[key] = None

    @abstractmethod
    def observe(self, change: Change) -> None:
        """Note the keys that a change concerns. Never writes."""

    @abstractmethod
    def reconcile(self, key: K, now: datetime) -> None:
        """Bring what a key stands for nearer to what it should be."""

    def work(self, now: datetime) -> None:
        """Put in order what was noted up to now."""
        dirty, self._dirty = self._dirty, {}
        for key in dirty:
            self.reconcile(key, now)

    def create(self, resource: str, obj: Json, now: datetime) -> Json:
        """Store a new object as the API server admits it."""
        return self.store.create(resource, admitted(BY_PLURAL[resource], obj, self.store), now=now)

    def delete(self, obj: Json, now: datetime, resource: str = "pods") -> None:
        """Tell an object to go, in its own grace period."""
        delete(self.store, resource, obj, DeleteOptions(), now=now)

    def disrupt(self, pod: Json, why: str, message: str, now: datetime) -> None:
        """Tell a pod to go for another's sake, and say so in its conditions."""
        told = with_condition(pod, "DisruptionTarget", "True", now=now, reason=why, message=message)
        self.delete(self.store.replace("pods", told, now=now), now)
