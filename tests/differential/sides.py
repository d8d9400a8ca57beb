"""What a scenario is played on, and the words in which it is asked about."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Protocol

from plimsoll.domain.kubernetes import DELETION_COST
from plimsoll_simulation.fake_cluster.conditions import controller_of
from tests.differential.scenario import Json, Request, resolve

OF = "differential.plimsoll.dev/of"
"""The label that says which scenario a cluster-wide object belongs to."""
MARK = "mark"
USER = "differential/1"
"""The user agent of every request, whose first part is its field manager."""
SEEN = (
    "pods",
    "nodes",
    "deployments",
    "replicasets",
    "statefulsets",
    "daemonsets",
    "jobs",
    "poddisruptionbudgets",
    "horizontalpodautoscalers",
    "persistentvolumeclaims",
)
"""The kinds that a picture shows."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Response:
    """What the API server answered."""

    status: int
    body: Any
    headers: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Seen:
    """One change as a watch shows it."""

    at: float
    """Seconds since some moment."""
    version: int
    type: str
    resource: str
    object: Json


class Side(Protocol):
    """A cluster with one scenario on it."""

    instant: float
    """Seconds within which two writes count as one: how far controllers lag behind each other."""

    def request(self, request: Request) -> Response:
        """Send a request in which no placeholder is left."""

    def settle(self, seconds: float) -> None:
        """Wait so long at least, and then until nothing of the scenario changes any more."""

    def objects(self, resource: str) -> Sequence[Json]:
        """Return what there is of a kind and belongs to the scenario."""

    def changes(self) -> Sequence[Seen]:
        """Return what changed since this was last asked, in the order of the versions."""


def send(side: Side, requests: Iterable[Request]) -> list[tuple[Request, Response]]:
    """Send requests. What their placeholders stand for is looked up before the first of them."""
    ready = [_resolved(side, request) for request in requests]
    return [(request, side.request(request)) for request in ready]


def _resolved(side: Side, request: Request) -> Request:
    def ask(what: str, words: list[str]) -> str:
        if what == "pod":
            return str(_pod(side, words)["metadata"]["name"])
        resource, name = words
        found = next(o for o in side.objects(resource) if o["metadata"]["name"] == name)
        return str(found["metadata"]["uid" if what == "uid" else "resourceVersion"])

    return replace(request, path=resolve(request.path, ask), body=resolve(request.body, ask))


def _pod(side: Side, words: list[str]) -> Json:
    app, *more = words
    node = next((w[1:] for w in more if w.startswith("@")), None)
    number = next((int(w) for w in more if w.isdecimal()), 0)
    found = [
        pod
        for pod in side.objects("pods")
        if (pod["metadata"].get("labels") or {}).get("app") == app
        and node in {None, pod["spec"].get("nodeName")}
        and "deletionTimestamp" not in pod["metadata"]
    ]
    return sorted(found, key=_standing)[number]


def _standing(pod: Json) -> tuple[str, ...]:
    meta = pod["metadata"]
    owner = controller_of(pod)
    own = meta["name"] if owner is None or owner["kind"] == "StatefulSet" else ""
    return (
        own,  # one that is the same on both sides
        pod["spec"].get("nodeName", ""),
        (meta.get("labels") or {}).get(MARK, ""),
        (meta.get("annotations") or {}).get(DELETION_COST, ""),
        meta["name"],
    )
