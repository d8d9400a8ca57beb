"""Requests to a fake cluster in the same process: no sockets, and time from whoever drives it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import timedelta
from typing import Final, Unpack

from plimsoll.adapters.kubernetes.transport import RequestParts, Response
from plimsoll.domain.errors import Temporary
from plimsoll.services.ports import Clock
from plimsoll_simulation.fake_cluster.cluster import FakeCluster
from plimsoll_simulation.fake_cluster.edits import Json
from plimsoll_simulation.fake_cluster.refusals import RefusedError, no_such_page
from plimsoll_simulation.fake_cluster.routes import target_of
from plimsoll_simulation.fake_cluster.watching import Watch

USER: Final = "plimsoll"


class FakeTransport:
    """Implements `plimsoll.adapters.kubernetes.transport.Transport`.

    Bodies are shared with the cluster's store, as the API itself shares them: read them only.
    """

    def __init__(self, cluster: FakeCluster, clock: Clock, *, user: str = USER) -> None:
        self.cluster = cluster
        self.clock = clock
        self._user = user

    def call(self, method: str, path: str, **more: Unpack[RequestParts]) -> Response:
        """Send a request and return its answer, whatever its status.

        Raises:
            Temporary: the API server is away.
        """
        try:
            query = more.get("query") or {}
            if "watch" in query:
                return self._watch(path, query)
            return self.cluster.handle(
                method,
                path,
                query,
                more.get("body"),
                more.get("content_type") or "application/json",
                now=self.clock.now(),
                user=self._user,
            )
        except ConnectionRefusedError as error:
            raise Temporary(f"{method} {path}: {error}") from error

    def late(self) -> float:
        """Return by how many seconds the events of a watch come late."""
        return 0.0

    def _watch(self, path: str, query: Mapping[str, str]) -> Response:
        self.cluster.reach(self.clock.now())
        try:
            target = target_of(path)
            if target is None:
                raise no_such_page()
            watch = Watch(self.cluster.store, target, query)
        except RefusedError as refused:
            return Response(status=refused.code, body=refused.status)
        seconds = float(query["timeoutSeconds"])
        return Response(status=200, events=FakeEvents(self, watch, seconds))


class FakeEvents:
    """What a watch in the same process tells: nothing more once the API server was away."""

    def __init__(self, transport: FakeTransport, watch: Watch, seconds: float) -> None:
        self._transport = transport
        self._watch = watch
        self._ends = transport.clock.now() + timedelta(seconds=seconds)
        self._outages = transport.cluster.outages

    @property
    def over(self) -> bool:
        """Whether nothing more will come than what can be taken now."""
        ended = self._transport.clock.now() >= self._ends
        return ended or self._watch.over or self._outages != self._transport.cluster.outages

    def take(self) -> Sequence[Json]:
        """Return the events since the last time that have arrived by now."""
        if self._outages != self._transport.cluster.outages:
            return []
        now = self._transport.clock.now()
        self._transport.cluster.step(now)
        events = list(self._watch.news(now - timedelta(seconds=self._transport.late())))
        return events if self._watch.over else [*events, self._watch.bookmark]

    def close(self) -> None:
        """Hear no more."""
