"""Nodes that come and go.

An instance that is gone sends no heartbeat. KWOK renews the leases it holds, so the lease of such
a node is given to somebody else for ever, with the time of its last renewal left as it was: KWOK
then leaves the node alone, and the node lifecycle controller sees no beat. Nobody else reads it.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Final

from plimsoll.adapters.kubernetes.transport import Response, Transport
from plimsoll.domain.errors import Refused, Temporary

JOIN_SECONDS: Final = 30.0
_ATTEMPTS: Final = 10
_WRITERS: Final = 8
_MANY: Final = 10
"""From here on one list is cheaper than asking for each node."""
ATTACHED_BY_CONTROLLER: Final = "volumes.kubernetes.io/controller-managed-attach-detach"
"""Kubelets write it on their node; the attach-detach controller knows no other nodes."""
_LEASES: Final = "/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases"
_NODES: Final = "/api/v1/nodes"
_NOBODY: Final = "vanished"
_FOR_EVER: Final = 2**31 - 1
_POLL_SECONDS: Final = 0.05
_OK, _CREATED, _NOT_FOUND, _CONFLICT = 200, 201, 404, 409


class Nodes:
    """The nodes of one control plane.

    Args:
        api: with all rights.
    """

    def __init__(self, api: Transport) -> None:
        self._api = api
        self._unsaid: list[str] = []
        """Nodes that vanished while the API server was away."""

    def join(self, *nodes: Mapping[str, Any]) -> None:
        """Create nodes and wait until the scheduler may use them."""
        with ThreadPoolExecutor(_WRITERS, thread_name_prefix="join") as threads:
            list(threads.map(self._create, nodes))
        names = {node["metadata"]["name"] for node in nodes}
        end = time.monotonic() + JOIN_SECONDS + len(nodes) / 10
        while names := self._unusable(names):
            if time.monotonic() > end:
                raise Refused(f"these nodes did not become Ready: {', '.join(sorted(names))}")
            time.sleep(_POLL_SECONDS)

    def vanish(self, names: Sequence[str], *, now: bool) -> None:
        """End the heartbeats of nodes now, or when the API server is back."""
        with ThreadPoolExecutor(_WRITERS, thread_name_prefix="vanish") as threads:
            said = list(threads.map(self._try_to_give_away, names)) if now else [False] * len(names)
        self._unsaid += [name for name, is_said in zip(names, said, strict=True) if not is_said]

    def _try_to_give_away(self, name: str) -> bool:
        try:
            self._give_away(name)
        except Temporary:  # the API server went away this moment
            return False
        return True

    def catch_up(self) -> None:
        """End the heartbeats of the nodes that vanished while the API server was away."""
        unsaid, self._unsaid = self._unsaid, []
        for name in unsaid:
            self._give_away(name)

    def _give_away(self, name: str) -> None:
        """Give a node's lease away; KWOK may be renewing it this moment."""
        spec = {"holderIdentity": _NOBODY, "leaseDurationSeconds": _FOR_EVER}
        path = f"{_LEASES}/{name}"
        answer = self._patch(path, spec)
        for _ in range(_ATTEMPTS):
            if answer.status == _NOT_FOUND:
                # It vanished before its first heartbeat: KWOK must never start with it.
                body = {"metadata": {"name": name}, "spec": spec}
                answer = self._api.call("POST", _LEASES, body=body, content_type="application/json")
            elif answer.status == _CONFLICT:
                answer = self._patch(path, spec)
        if answer.status not in {_OK, _CREATED}:
            raise Refused(f"PATCH {path}: {answer.status} {answer.body}")

    def _patch(self, path: str, spec: Mapping[str, Any]) -> Response:
        return self._api.call(
            "PATCH", path, body={"spec": spec}, content_type="application/merge-patch+json"
        )

    def _forget_lease(self, name: str) -> None:
        """Remove the lease of a node of the same name that was here before."""
        answer = self._api.call("GET", f"{_LEASES}/{name}")
        if answer.status == _OK and answer.body["spec"].get("holderIdentity") == _NOBODY:
            self._api.call("DELETE", f"{_LEASES}/{name}")

    def _create(self, node: Mapping[str, Any]) -> None:
        self._forget_lease(node["metadata"]["name"])
        answer = self._api.call("POST", _NODES, body=_whole(node), content_type="application/json")
        _expect(answer, _CREATED, f"POST {_NODES}")

    def _unusable(self, names: set[str]) -> set[str]:
        """Return those that the scheduler may not use yet."""
        if len(names) > _MANY:
            answer = self._api.call("GET", _NODES)
            _expect(answer, _OK, f"GET {_NODES}")
            return names - {n["metadata"]["name"] for n in answer.body["items"] if _usable(n)}
        unusable = set()
        for name in names:
            answer = self._api.call("GET", f"{_NODES}/{name}")
            _expect(answer, _OK, f"GET {_NODES}/{name}")
            if not _usable(answer.body):
                unusable.add(name)
        return unusable


def _usable(node: Mapping[str, Any]) -> bool:
    ready = any(
        c["type"] == "Ready" and c["status"] == "True" for c in node["status"].get("conditions", ())
    )
    kept_out = any(
        taint["key"] == "node.kubernetes.io/not-ready" for taint in node["spec"].get("taints", ())
    )
    return ready and not kept_out


def _whole(node: Mapping[str, Any]) -> dict[str, Any]:
    """Return a node as its kubelet registers it: what it has is what it can give."""
    meta = dict(node["metadata"])
    meta["annotations"] = {**meta.get("annotations", {}), ATTACHED_BY_CONTROLLER: "true"}
    status = dict(node.get("status", {}))
    status.setdefault("capacity", dict(status.get("allocatable", {})))
    status.setdefault("allocatable", dict(status["capacity"]))
    return {"apiVersion": "v1", "kind": "Node", **node, "metadata": meta, "status": status}


def _expect(answer: Response, status: int, what: str) -> None:
    if answer.status != status:
        raise Refused(f"{what}: {answer.status} {answer.body}")
