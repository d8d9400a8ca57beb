"""The API of a hollow cluster, with somebody who looks over the responder's shoulder."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final, override

from plimsoll_testbed.model.hollow.api import HollowApi, Response
from plimsoll_testbed.model.hollow.routes import Target, target_of
from plimsoll_testbed.model.hollow.store import Store
from plimsoll_testbed.storms.scaleins import ScaleIns
from plimsoll_testbed.storms.writes import Write

_FAILED: Final = 400


@dataclass(frozen=True, slots=True, kw_only=True)
class Watching:
    """Who is shown the writes of one cluster."""

    before: Callable[[Write], Sequence[tuple[str, str]]]
    """Judges a write of the responder before it happens: rule, and what is wrong."""
    note: Callable[[str, str], None]
    """Takes what was wrong with a write that happened."""
    scale_ins: ScaleIns


class WatchedApi(HollowApi):
    """An API server that shows the responder's writes to somebody before they happen."""

    def __init__(self, store: Store, user: str, watch: Watching, *, lease_for_all: bool) -> None:
        super().__init__(store)
        self._user = user
        self._watch = watch
        self._lease_for_all = lease_for_all
        self._unheard: set[str] = set()
        """Workloads whose owner set the count that a temporary change had set already."""

    @override
    def handle(
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
        target = target_of(path)
        ours = user == self._user
        if ours and target is not None and target.resource.plural == "leases":
            if self._lease_for_all:
                return _lease(method, target, body)
        elif target is not None and target.name and method != "GET":
            write = Write(method=method, target=target, name=target.name, body=body or {}, now=now)
            # An owner who sets by chance the very count that stands there cannot be heard.
            judged = ours and path not in self._unheard
            with self._watch.scale_ins.during(write, ours=judged):
                return self._written(
                    write, path, query, body, content_type, user=user, judged=judged
                )
        return super().handle(method, path, query, body, content_type, now=now, user=user)

    def _written(  # noqa: PLR0913, PLR0917 - the parts of a request
        self,
        write: Write,
        path: str,
        query: Mapping[str, str] | None,
        body: Any,
        content_type: str,
        user: str,
        *,
        judged: bool,
    ) -> Response:
        wrong = self._watch.before(write) if judged else []
        revision = self.store.revision
        answer = super().handle(
            write.method, path, query, body, content_type, now=write.now, user=user
        )
        if path.endswith("/scale") and self.store.revision == revision:
            self._unheard.add(path.removesuffix("/scale"))
        if answer.status < _FAILED:  # what was refused did no harm
            for rule, what in wrong:
                self._watch.note(rule, what)
        return answer


def _lease(method: str, target: Target, body: Any) -> Response:
    """Let everybody who asks hold the lease: several executors at once."""
    if method == "GET":
        metadata = {"name": target.name, "namespace": target.namespace, "resourceVersion": "1"}
        return Response(status=200, body={"metadata": metadata, "spec": {}})
    return Response(status=201 if method == "POST" else 200, body=body)
