"""Writes manifests into a cluster with the rights of whoever runs the command, by server-side apply."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final, Protocol

from plimsoll.adapters.kubernetes.calls import Call
from plimsoll.adapters.kubernetes.errors import refusal, said_of
from plimsoll.adapters.kubernetes.transport import Response, Transport
from plimsoll.domain.errors import MissingRights, PlimsollError, Refused
from plimsoll.domain.kubernetes import LEASE, NAMESPACE
from plimsoll_cli.setup.manifests import Manifest, named

MANAGER: Final = "plimsoll-cli"
"""The field manager of what is applied here: https://kubernetes.io/docs/reference/using-api/server-side-apply/"""
_OK: Final = 200
_REFUSED: Final = 400
_FORBIDDEN: Final = 403
_NOT_FOUND: Final = 404
_GROUPS: Final = ("/api/v1", "/apis/apps/v1", "/apis/batch/v1", "/apis/coordination.k8s.io/v1")
"""APIs whose objects in the namespace `plimsoll` keep it from being deleted."""
_OF_THE_NAMESPACE: Final = frozenset(
    {f"leases {LEASE}", "configmaps kube-root-ca.crt", "serviceaccounts default"}
)
"""What Kubernetes itself puts into a namespace, and our Lease."""


class ClusterObjects(Protocol):
    """The objects of a cluster, as its administrator changes them.

    Each method raises a `PlimsollError` where the cluster cannot be asked, or refuses.
    """

    def holds(self, obj: Manifest) -> bool:
        """Whether an object is there, as its manifest says; false where it may not be applied."""

    def exists(self, obj: Manifest) -> bool:
        """Whether an object of this kind and name is there."""

    def apply(self, obj: Manifest) -> None:
        """Create an object, or give it the fields of its manifest."""

    def delete(self, obj: Manifest) -> None:
        """Delete an object; one that is gone is no error."""

    def others(self) -> Sequence[str]:
        """Return what lies in the namespace `plimsoll` and would be deleted with it, but for our own."""


class AppliedObjects:
    """Implements `ClusterObjects`.

    Args:
        transport: carries the requests.
        cluster: its name, for messages.
    """

    def __init__(self, transport: Transport, cluster: str) -> None:
        self._transport = transport
        self._cluster = cluster
        self._known: dict[str, Sequence[Mapping[str, Any]]] = {}

    def holds(self, obj: Manifest) -> bool:
        """Compare what is there with what a dry run of applying it would leave."""
        there = self._read(obj)
        if there is None:
            return False
        try:
            return _content(there) == _content(self._apply(obj, {"dryRun": "All"}))
        except MissingRights:
            return False

    def exists(self, obj: Manifest) -> bool:
        """Read it."""
        return self._read(obj) is not None

    def apply(self, obj: Manifest) -> None:
        """Apply it, and take over fields that another manager holds, such as an earlier kubectl apply."""
        self._apply(obj, {})

    def delete(self, obj: Manifest) -> None:
        """Delete it, and what it owns in the background."""
        answer = self._call("DELETE", obj)
        if answer is not None and answer.status not in {_OK, 202, _NOT_FOUND}:
            raise self._refusal("delete", obj, answer)

    def others(self) -> Sequence[str]:
        """List the namespace by every kind of the APIs that hold workloads and their settings."""
        return sorted(found for root in _GROUPS for found in self._others(root))

    def _others(self, root: str) -> Iterator[str]:
        for resource in self._resources(root):
            name = resource["name"]
            if not resource["namespaced"] or "list" not in resource["verbs"] or name == "events":
                continue
            answer = self._transport.call("GET", f"{root}/namespaces/{NAMESPACE}/{name}")
            if answer.status >= _REFUSED:
                raise self._refused(f"list {name} in {NAMESPACE}", answer)
            for item in answer.body["items"]:
                found = f"{name} {item['metadata']['name']}"
                if found not in _OF_THE_NAMESPACE and not item["metadata"].get("ownerReferences"):
                    yield found

    def _read(self, obj: Manifest) -> Mapping[str, Any] | None:
        answer = self._call("GET", obj)
        if answer is None or answer.status == _NOT_FOUND:
            return None
        if answer.status >= _REFUSED:
            raise self._refusal("get", obj, answer)
        found: Mapping[str, Any] = answer.body
        return found

    def _apply(self, obj: Manifest, query: Mapping[str, str]) -> Mapping[str, Any]:
        path = self._path(obj)
        if path is None:
            raise Refused(
                f"cluster {self._cluster} knows no {obj['kind']} of {obj['apiVersion']}: Kubernetes before 1.30 "
                "takes kubectl apply -k infra/cluster-rbac-only"
            )
        answer = self._transport.call(
            "PATCH",
            path,
            query={"fieldManager": MANAGER, "force": "true", **query},
            body=obj,
            content_type="application/apply-patch+yaml",  # JSON is YAML too
        )
        if answer.status >= _REFUSED:
            raise self._refusal("patch", obj, answer)
        found: Mapping[str, Any] = answer.body
        return found

    def _call(self, method: str, obj: Manifest) -> Response | None:
        """Make a request about an object; None: the cluster does not know its kind."""
        path = self._path(obj)
        return None if path is None else self._transport.call(method, path)

    def _path(self, obj: Manifest) -> str | None:
        root = _root(obj["apiVersion"])
        for resource in self._resources(root):
            if resource["kind"] == obj["kind"] and "/" not in resource["name"]:
                namespace = obj["metadata"].get("namespace")
                middle = f"/namespaces/{namespace}" if resource["namespaced"] else ""
                return f"{root}{middle}/{resource['name']}/{obj['metadata']['name']}"
        return None

    def _resources(self, root: str) -> Sequence[Mapping[str, Any]]:
        """Return what the API server serves of one version of a group; it is asked once."""
        if root not in self._known:
            answer = self._transport.call("GET", root)
            if answer.status >= _REFUSED and answer.status != _NOT_FOUND:
                raise self._refused(f"read {root}", answer)
            self._known[root] = answer.body["resources"] if answer.status == _OK else ()
        return self._known[root]

    def _refusal(self, verb: str, obj: Manifest, answer: Response) -> PlimsollError:
        if answer.status == _FORBIDDEN:
            return self._refused(f"{verb} {named(obj)}", answer)
        group, _, version = obj["apiVersion"].rpartition("/")
        call = Call(verb=verb, group=group, version=version, resource=obj["kind"])
        return refusal(self._cluster, call, obj["metadata"]["name"], answer)

    def _refused(self, what: str, answer: Response) -> MissingRights:
        # Not `refusal`: its cure is our manifests, and here nobody but an administrator can help.
        return MissingRights(
            f"cluster {self._cluster}: {what}: {answer.status} {said_of(answer)}: ask as an administrator of the cluster"
        )


def _root(version: str) -> str:
    return f"/apis/{version}" if "/" in version else f"/api/{version}"


def _content(obj: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return an object without what the API server notes about each write."""
    noted = {"managedFields", "resourceVersion", "generation"}
    metadata = {k: v for k, v in obj["metadata"].items() if k not in noted}
    return {**{k: v for k, v in obj.items() if k != "status"}, "metadata": metadata}
