"""What a controller is: it notes which keys changed, and later puts each in order.

As in Kubernetes a controller is level-triggered: it looks at what is, not at what happened, so
several changes of one key cost one look. Nothing runs while nothing changes. A key whose write was refused
is looked at again, each time after twice as long.

Sources: https://kubernetes.io/docs/concepts/architecture/controller/,
k8s.io/client-go/util/workqueue/default_rate_limiters.go
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Hashable
from datetime import datetime, timedelta
from functools import partial
from typing import ClassVar, Final

from plimsoll_simulation.fake_cluster.admission import admitted
from plimsoll_simulation.fake_cluster.conditions import with_condition
from plimsoll_simulation.fake_cluster.deletion import DeleteOptions, delete
from plimsoll_simulation.fake_cluster.edits import Json
from plimsoll_simulation.fake_cluster.refusals import RefusedError
from plimsoll_simulation.fake_cluster.resources import BY_PLURAL
from plimsoll_simulation.fake_cluster.state import ClusterState
from plimsoll_simulation.fake_cluster.store import Change

_FIRST_PAUSE: Final = timedelta(milliseconds=5)
_LONGEST_PAUSE: Final = timedelta(seconds=1000)


class Controller[K: Hashable](ABC):
    """A queue of keys without repetition, in the order in which they were first noted."""

    watches: ClassVar[frozenset[str]]
    """The plurals whose changes `observe` is shown."""

    def __init__(self, state: ClusterState) -> None:
        self.state = state
        self.store = state.store
        self._dirty: dict[K, None] = {}
        self._pauses: dict[K, timedelta] = {}
        """How long to wait before the next try, where writes were refused."""

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
            try:
                self.reconcile(key, now)
            except RefusedError as refused:
                self.refused(key, refused, now)
                pause = self._pauses.get(key, _FIRST_PAUSE)
                self._pauses[key] = min(2 * pause, _LONGEST_PAUSE)
                self.state.timers.write(now + pause, partial(self.again, key))
            else:
                self._pauses.pop(key, None)

    def again(self, key: K, _now: datetime) -> None:
        """Note a key, as a timer calls it."""
        self.note(key)

    def refused(self, key: K, refused: RefusedError, now: datetime) -> None:  # noqa: B027 - most say nothing
        """Say that a write for a key was refused; a controller that says so in a status overrides this."""

    def create(self, resource: str, obj: Json, now: datetime) -> Json:
        """Store a new object as the API server admits it."""
        return self.store.create(
            resource, admitted(BY_PLURAL[resource], obj, self.store, now), now=now
        )

    def delete(self, obj: Json, now: datetime, resource: str = "pods") -> None:
        """Tell an object to go, in its own grace period."""
        delete(self.store, resource, obj, DeleteOptions(), now=now)

    def disrupt(self, pod: Json, why: str, message: str, now: datetime) -> None:
        """Tell a pod to go for another's sake, and say so in its conditions."""
        told = with_condition(pod, "DisruptionTarget", "True", now=now, reason=why, message=message)
        self.delete(self.store.replace("pods", told, now=now), now)
