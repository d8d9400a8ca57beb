"""The fake cluster as a side: in process, in virtual time, one cluster for each scenario."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta

from plimsoll_cli.cluster.install_policy import manifests
from plimsoll_simulation.fake_cluster.cluster import FakeCluster
from plimsoll_simulation.fake_cluster.settings import Choice, Settings
from plimsoll_simulation.fake_cluster.store import Change
from tests.differential.scenario import Json, Request
from tests.differential.sides import SEEN, USER, Response, Seen

_START = datetime(2026, 3, 1, 12, 0, tzinfo=UTC)
_QUIET = timedelta(seconds=4)
_LONGEST = timedelta(minutes=10)


class FakeSide:
    """One fake cluster whose scheduler chooses among the nodes that fit as it is told."""

    instant = 0.0

    def __init__(self, scenario: str, choice: Choice, seed: int) -> None:
        self.now = _START
        self.cluster = FakeCluster(now=_START, seed=seed, settings=Settings(choice=choice))
        self._changes: list[Seen] = []
        self._changed = _START
        self.cluster.on_change(self._note)
        namespace: Json = {"kind": "Namespace", "metadata": {"name": scenario}}
        self.cluster.apply([*manifests(), namespace], now=self.now)

    def request(self, request: Request) -> Response:
        if (request.method, request.path) == ("POST", "/api/v1/nodes"):
            self.cluster.join(request.body, now=self.now)
            return Response(status=201, body=request.body)
        answer = self.cluster.handle(
            request.method,
            request.path,
            request.query,
            request.body,
            request.content_type,
            now=self.now,
            user=USER,
        )
        return Response(status=answer.status, body=answer.body, headers=answer.headers)

    def settle(self, seconds: float) -> None:
        end = self.now + timedelta(seconds=seconds)
        self.cluster.step(end)
        self._changed = max(self._changed, end)
        last = end + _LONGEST
        while (due := self.cluster.due) is not None and due <= min(self._changed + _QUIET, last):
            self.cluster.step(due)
        self.now = max(end, self._changed) + _QUIET
        self.cluster.step(self.now)

    def objects(self, resource: str) -> Sequence[Json]:
        return list(self.cluster.store.all(resource))

    def changes(self) -> Sequence[Seen]:
        found, self._changes = self._changes, []
        return found

    def _note(self, change: Change) -> None:
        self._changed = change.at
        if change.resource in SEEN:
            self._changes.append(
                Seen(
                    at=change.at.timestamp(),
                    version=change.revision,
                    type=change.type,
                    resource=change.resource,
                    object=change.object,
                )
            )
