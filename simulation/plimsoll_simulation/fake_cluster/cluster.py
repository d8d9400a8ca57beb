"""A fake cluster: the API server's behaviour and the controllers that decide a drain.

There are no threads and no clock. Whoever drives it says what time it is: `handle` for a request,
`step` to let happen what is due by then, `due` for when that is next. The same calls with the same
seed give the same cluster, object by object.

What is modelled after what, and what is left out, stands in docs/develop/rigs.md.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from datetime import datetime
from typing import Any

from plimsoll.adapters.kubernetes.transport import Response
from plimsoll_simulation.fake_cluster.api import FakeApi
from plimsoll_simulation.fake_cluster.controllers.kubelet import Kubelets
from plimsoll_simulation.fake_cluster.controllers.nodes import NodeLifecycle
from plimsoll_simulation.fake_cluster.controllers.table import CONTROLLERS
from plimsoll_simulation.fake_cluster.edits import Json
from plimsoll_simulation.fake_cluster.identities import Identities
from plimsoll_simulation.fake_cluster.indexes import Indexes
from plimsoll_simulation.fake_cluster.refusals import RefusedError
from plimsoll_simulation.fake_cluster.resources import path_of
from plimsoll_simulation.fake_cluster.settings import Settings
from plimsoll_simulation.fake_cluster.state import ClusterState, PodStopped
from plimsoll_simulation.fake_cluster.store import Change, Store
from plimsoll_simulation.fake_cluster.timers import Timers

_NAMESPACES = ("default", "kube-system", "kube-public", "kube-node-lease")
_ROUNDS = 10_000


class FakeCluster:
    """One cluster in memory."""

    def __init__(self, *, now: datetime, seed: int = 0, settings: Settings | None = None) -> None:
        identities = Identities(seed)
        self.store = Store(identities)
        self.api = FakeApi(self.store)
        self.now = now
        """The time that the cluster has reached; it never goes back."""
        self.api_up = True
        self.outages = 0
        """How often the API server went away so far: each ends all watches."""
        self.state = ClusterState(
            store=self.store,
            indexes=Indexes(self.store),
            timers=Timers(),
            identities=identities,
            settings=settings or Settings(),
            started=now,
        )
        self._reaction: datetime | None = None
        self._controllers = [make(self.state) for make in CONTROLLERS]
        self._nodes = next(c for c in self._controllers if isinstance(c, NodeLifecycle))
        self._kubelets = next(c for c in self._controllers if isinstance(c, Kubelets))
        self.store.subscribe(self._tell)
        for name in _NAMESPACES:
            self.apply([{"kind": "Namespace", "metadata": {"name": name}}], now=now)

    @property
    def due(self) -> datetime | None:
        """When something happens next by itself; None while everything is at rest."""
        times = [self.state.timers.next(writes=self.api_up)]
        if self.api_up:
            times.append(self._reaction)
        return min((max(t, self.now) for t in times if t is not None), default=None)

    def step(self, now: datetime) -> datetime | None:
        """Let everything happen that is due by `now`, each at its own time; return `due`."""
        while (due := self.due) is not None and due <= now:
            self.now = due
            timer = self.state.timers.next(writes=self.api_up)
            if timer is not None and timer <= due:
                self.state.timers.pop(writes=self.api_up)(due)
                self._wake()
            else:
                self._react(due)
        self.now = max(self.now, now)
        return due

    def handle(  # noqa: PLR0913 - the parts of an HTTP request
        self,
        method: str,
        path: str,
        query: Mapping[str, str] | None = None,
        body: Any = None,
        content_type: str = "application/json",
        *,
        now: datetime,
        user: str = "",
    ) -> Response:
        """Answer one request at a time, after everything that was due by then. See `FakeApi`.

        Raises:
            ConnectionRefusedError: the API server is away.
        """
        self.reach(now)
        return self.api.handle(method, path, query, body, content_type, now=self.now, user=user)

    def reach(self, now: datetime) -> None:
        """Connect to the API server, after everything that was due by then.

        Raises:
            ConnectionRefusedError: it is away.
        """
        self.step(now)
        if not self.api_up:
            raise ConnectionRefusedError("the API server is away")

    def apply(self, manifests: Iterable[Json], *, now: datetime, user: str = "kubectl") -> None:
        """Create each object, or change it to what the manifest says (by merge patch).

        Raises:
            RefusedError: an object was refused; those before it were applied.
        """
        for manifest in manifests:
            collection, name = path_of(manifest)
            answer = self.handle("POST", collection, body=manifest, now=now, user=user)
            if answer.status == 409:  # noqa: PLR2004 - it exists
                answer = self.handle(
                    "PATCH",
                    f"{collection}/{name}",
                    body=manifest,
                    content_type="application/merge-patch+json",
                    now=now,
                    user=user,
                )
            if answer.status >= 400:  # noqa: PLR2004 - refused
                raise RefusedError(answer.body)

    def join(self, node: Json, *, now: datetime) -> None:
        """Let a node join, Ready at once: its start-up time is the caller's to wait for.

        Raises:
            RefusedError: the Node was refused.
        """
        self.step(now)
        name = node["metadata"]["name"]
        self._nodes.join(node, self.now)
        self._kubelets.found_stopped(name, self.now)
        self._kubelets.begin(name)
        self._wake()

    def vanish(self, name: str, *, now: datetime, stopped: bool = False) -> None:
        """Take a node's instance away this instant: what runs there is killed.

        The Node of one that is only stopped is kept, and `join` lets it come back.
        """
        self.step(now)
        self._kubelets.vanish(name, self.now)
        self._nodes.vanish(name, self.now, stopped=stopped)

    def take_api_away(self, *, now: datetime) -> None:
        """Let the API server go down: requests fail, controllers stand still, pods run on."""
        self.step(now)
        self.api_up = False
        self.outages += 1

    def bring_api_back(self, *, now: datetime) -> None:
        """Let the API server come back; what waited for it happens now."""
        self.step(now)
        self.api_up = True

    def on_change(self, callback: Callable[[Change], None]) -> None:
        """Call back on every change of every object; the callback must not write."""
        self.store.subscribe(callback)

    def on_pod_stopped(self, callback: Callable[[PodStopped], None]) -> None:
        """Call back when a pod that ran stops running, at the moment it does."""
        self.state.stop_listeners.append(callback)

    def _tell(self, change: Change) -> None:
        for controller in self._controllers:
            if change.resource in controller.watches:
                controller.observe(change)
        if self._reaction is None and any(c.busy for c in self._controllers):
            self._reaction = change.at + self.state.settings.reaction

    def _wake(self) -> None:
        if self._reaction is None and any(c.busy for c in self._controllers):
            self._reaction = self.now + self.state.settings.reaction

    def _react(self, now: datetime) -> None:
        """Let the controllers work until none of them has anything left to do."""
        rounds = 0
        while busy := [c for c in self._controllers if c.busy]:
            for controller in busy:
                controller.work(now)
            rounds += 1
            if rounds > _ROUNDS:
                raise RuntimeError(f"these controllers undo each other: {busy}")
        self._reaction = None
