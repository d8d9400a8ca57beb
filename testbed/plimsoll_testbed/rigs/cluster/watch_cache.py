"""What an API server shows of its cluster, kept up to date by watches.

Whoever asks may not wait for an answer, so it is kept here. While the API server is away it is what
was shown last, as for everybody who watches.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final

from plimsoll_testbed.rigs.cluster.following import Following
from plimsoll_testbed.rigs.controlplane import ControlPlane

type Json = dict[str, Any]
type Key = tuple[str, str]

WATCHED: Final[Mapping[str, str]] = {
    "nodes": "/api/v1/nodes",
    "pods": "/api/v1/pods",
    "deployments": "/apis/apps/v1/deployments",
    "replicasets": "/apis/apps/v1/replicasets",
    "statefulsets": "/apis/apps/v1/statefulsets",
}
"""What a drill looks at: resource -> path."""


class WatchCache:
    """The objects of one cluster, as the watches last told.

    Args:
        heard: called after each change was taken in: resource, ADDED, MODIFIED or DELETED, and the
            object. It is called from several threads, and has to see to it that they take turns.
    """

    def __init__(self, heard: Callable[[str, str, Json], None]) -> None:
        self._heard = heard
        self._objects: dict[str, dict[Key, Json]] = {resource: {} for resource in WATCHED}
        self._on_node: dict[str, dict[str, Json]] = {}
        self._followers: list[Following] = []

    def follow(self, plane: ControlPlane) -> None:
        """Begin to watch; it ends with `end`."""
        for resource, path in WATCHED.items():
            follower = Following(
                plane.kubeconfig(),
                path,
                lambda change, obj, resource=resource: self._heard(resource, change, obj),  # type: ignore[misc]  # mypy cannot infer a lambda with a default
            )
            self._followers.append(follower)
            follower.start()

    def end(self) -> None:
        """Watch no longer."""
        for follower in self._followers:
            follower.end()

    @property
    def behind(self) -> bool:
        """Whether a watch is broken, so that something may have changed unseen."""
        return any(follower.behind for follower in self._followers)

    @property
    def errors(self) -> list[Exception]:
        """What ended a watch for good."""
        return [follower.error for follower in self._followers if follower.error is not None]

    def take(self, resource: str, change: str, obj: Json) -> None:
        """Take in a change."""
        metadata = obj["metadata"]
        key = metadata.get("namespace", ""), metadata["name"]
        objects = self._objects[resource]
        if change != "DELETED":
            objects[key] = obj
        elif key in objects and objects[key]["metadata"]["uid"] == metadata["uid"]:
            del objects[key]
        node = obj["spec"].get("nodeName") if resource == "pods" else None
        if node is not None:
            there = self._on_node.setdefault(node, {})
            if change == "DELETED":
                there.pop(metadata["uid"], None)
            else:
                there[metadata["uid"]] = obj

    def get(self, resource: str, namespace: str, name: str) -> Json | None:
        """Return an object, or None."""
        return self._objects[resource].get((namespace, name))

    def all(self, resource: str) -> Iterable[Json]:
        """Return all objects of a kind."""
        return self._objects[resource].values()

    def on_node(self, node: str) -> Iterable[Json]:
        """Return the pods that are bound to a node."""
        return self._on_node.get(node, {}).values()
