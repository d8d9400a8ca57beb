"""Karpenter itself, on a real control plane: its core as it is released, with its KWOK provider.

It makes nodes for Pending pods, taints and drains them, and ends them once they are empty. There is no
EC2 and no queue: an instance is a Node that KWOK plays, and an interruption is what Karpenter's own
controller makes of one, a NodeClaim that is deleted
(https://karpenter.sh/docs/concepts/disruption/#interruption).

It listens for metrics and probes on two free ports of all addresses, and no setting changes that.
"""

from __future__ import annotations

import json
import shutil
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any, Final, Self, override

import yaml

from plimsoll.adapters.kubernetes.transport import Transport
from plimsoll.domain.errors import Refused
from plimsoll.domain.kubernetes import CAPACITY_LABELS, ZONE
from plimsoll_testbed.rigs.controlplane import ControlPlane
from plimsoll_testbed.rigs.controlplane.builds import with_manifests
from plimsoll_testbed.rigs.supervised import SupervisedProcess, free_port, listens

NAME: Final = "karpenter"
CRDS: Final = ("pkg/apis/crds", "kwok/apis/crds")
"""Folders of its source."""
API: Final = "/apis/karpenter.sh/v1"
NODE_CLASS: Final = {"group": "karpenter.kwok.sh", "kind": "KWOKNodeClass", "name": "rig"}
READY_SECONDS: Final = 60.0
_DEFINITIONS: Final = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
_CLASSES: Final = "/apis/karpenter.kwok.sh/v1alpha1/kwoknodeclasses"
_POLL_SECONDS: Final = 0.1
_OK, _CREATED, _CONFLICT = 200, 201, 409


def instance_type(name: str, zones: Sequence[str], **resources: str) -> Mapping[str, Any]:
    """Return an instance type as the KWOK provider reads it, of which spot is the cheaper one."""
    return {
        "name": name,
        "architecture": "amd64",
        "operatingSystems": ["linux"],
        "resources": resources,
        "offerings": [
            {
                "Price": price,
                "Available": True,
                "Requirements": [
                    {"key": key, "operator": "In", "values": [value]}
                    for key, value in ((CAPACITY_LABELS[1], capacity), (ZONE, zone))
                ],
            }
            for capacity, price in (("spot", 0.03), ("on-demand", 0.1))
            for zone in zones
        ],
    }


class Karpenter(AbstractContextManager["Karpenter"]):
    """Karpenter on one control plane, while its block lasts.

    Args:
        plane: runs already; Karpenter may do everything on it.
        types: all that it may choose from.
        startup: from the launch of a node to its registration, for example `3s`.
    """

    def __init__(
        self, plane: ControlPlane, types: Sequence[Mapping[str, Any]], *, startup: str = "1s"
    ) -> None:
        self._api: Transport = plane.transport()
        self._plane = plane
        self._types = types
        self._startup = startup
        self._folder = Path()
        self._process: SupervisedProcess | None = None

    @override
    def __enter__(self) -> Self:
        """Build it where that was not done yet, start it, and wait until it is at work.

        Raises:
            Refused: it cannot be built, or does not start.
        """
        program, definitions = with_manifests(NAME, CRDS)
        for file in definitions:
            self._make(_DEFINITIONS, yaml.safe_load(file.read_text(encoding="utf-8")))
        self._until(lambda: self._api.call("GET", _CLASSES).status == _OK)
        self._make(
            _CLASSES,
            {
                "apiVersion": "karpenter.kwok.sh/v1alpha1",
                "kind": NODE_CLASS["kind"],
                "metadata": {"name": NODE_CLASS["name"]},
                "spec": {"nodeRegistrationDelay": self._startup},
            },
        )
        self._folder = Path(tempfile.mkdtemp(prefix="plimsoll-karpenter-"))
        types = self._folder / "instance-types.json"
        types.write_text(json.dumps(list(self._types)), encoding="utf-8")
        probes = free_port()
        self._process = SupervisedProcess(
            name=NAME,
            command=[program],
            folder=self._folder,
            log=self._plane.log / f"{NAME}.log",
            environment={
                "KUBECONFIG": str(self._plane.kubeconfig()),
                "DISABLE_LEADER_ELECTION": "true",
                "METRICS_PORT": str(free_port()),
                "HEALTH_PROBE_PORT": str(probes),
                "INSTANCE_TYPES_FILE_PATH": str(types),
            },
        )
        self._process.start()
        self._until(lambda: listens(probes))
        return self

    @override
    def __exit__(self, kind: object, error: object, trace: object) -> None:
        """Stop it.

        Raises:
            Refused: it had ended by itself meanwhile, and what was seen cannot be trusted.
        """
        process, self._process = self._process, None
        assert process is not None  # noqa: S101 - it was started
        ended = process.ended and error is None
        process.end(by_force=True)
        words = process.tail()
        shutil.rmtree(self._folder, ignore_errors=True)
        if ended:
            raise Refused(f"{NAME} ended by itself:\n{words}")

    def make_pool(
        self,
        name: str,
        *,
        capacities: Sequence[str] = ("spot",),
        labels: Mapping[str, str] | None = None,
        limits: Mapping[str, str] | None = None,
    ) -> None:
        """Create a NodePool whose nodes are never consolidated: only interruptions end them.

        Raises:
            Refused: the API server does not take it.
        """
        requirements = [{"key": CAPACITY_LABELS[1], "operator": "In", "values": list(capacities)}]
        self._make(
            f"{API}/nodepools",
            {
                "apiVersion": "karpenter.sh/v1",
                "kind": "NodePool",
                "metadata": {"name": name},
                "spec": {
                    "template": {
                        "metadata": {"labels": dict(labels or {})},
                        "spec": {"requirements": requirements, "nodeClassRef": NODE_CLASS},
                    },
                    "disruption": {"consolidateAfter": "Never"},
                    "limits": dict(limits or {}),
                },
            },
        )

    def interrupt(self, node: str) -> None:
        """Do what its interruption controller does at a notice: delete the NodeClaim of the node.

        Raises:
            Refused: the node has none.
        """
        claims = self._api.call("GET", f"{API}/nodeclaims").body["items"]
        for claim in claims:
            if claim.get("status", {}).get("nodeName") == node:
                name = claim["metadata"]["name"]
                answer = self._api.call("DELETE", f"{API}/nodeclaims/{name}")
                if answer.status == _OK:
                    return
        raise Refused(f"no NodeClaim of {node} could be deleted")

    def _make(self, collection: str, body: Mapping[str, Any]) -> None:
        answer = self._api.call("POST", collection, body=body, content_type="application/json")
        if answer.status not in {_CREATED, _CONFLICT}:
            raise Refused(f"POST {collection}: {answer.status} {answer.body}")

    def _until(self, holds: Callable[[], bool]) -> None:
        end = time.monotonic() + READY_SECONDS
        while not holds():
            tail = "" if self._process is None else self._process.tail()
            if time.monotonic() > end or (self._process is not None and self._process.ended):
                raise Refused(f"{NAME} is not at work:\n{tail}")
            time.sleep(_POLL_SECONDS)


if __name__ == "__main__":
    with_manifests(NAME, CRDS)
