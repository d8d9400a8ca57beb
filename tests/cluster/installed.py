"""`infra/cluster` on a control plane, applied and in force."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from plimsoll.adapters.kubernetes import Response, Transport
from plimsoll.adapters.kubernetes.calls import OVERLAYS
from plimsoll.adapters.kubernetes.client import ClientTransport
from plimsoll_cli.probes.kubernetes import GROUP
from plimsoll_testbed.rigs.cluster import installation
from plimsoll_testbed.rigs.controlplane import ControlPlane
from tests.contract.rights import CLUSTER

BINDINGS = "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings"
PATIENCE = 30.0
"""Seconds until a policy that was applied must hold; usually one or two."""


def install(plane: ControlPlane) -> None:
    """Apply everything, in its order, and return when it holds."""
    for folder in (CLUSTER, *(CLUSTER / overlay for overlay in OVERLAYS)):
        installation.install(plane.transport(), folder)
    until(lambda: "'plimsoll-lease'" in message_of(a_lease(plane, "somebody-elses")))


def needs_mutating_policies(plane: ControlPlane) -> None:
    """Skip a test where the API server has no MutatingAdmissionPolicy of v1: before 1.36."""
    path = "/apis/admissionregistration.k8s.io/v1/mutatingadmissionpolicies"
    if plane.transport().call("GET", path).status == 404:
        pytest.skip(f"Kubernetes {plane.version} has no MutatingAdmissionPolicy of v1")


def as_member(plane: ControlPlane, user: str = "admin") -> ClientTransport:
    """Somebody, an administrator or not, who comes as one of our group."""
    return plane.access(user).transport(as_group=GROUP)


def a_lease(plane: ControlPlane, name: str) -> Response:
    """Try to make a Lease in our namespace."""
    return plane.transport("plimsoll").call(
        "POST",
        "/apis/coordination.k8s.io/v1/namespaces/plimsoll/leases",
        query={"dryRun": "All"},
        body={"metadata": {"name": name}},
        content_type="application/json",
    )


def message_of(answer: Response) -> str:
    body: Any = answer.body
    return str(body.get("message", "")) if isinstance(body, dict) else str(body)


def until(holds: Callable[[], bool], seconds: float = PATIENCE) -> None:
    """Wait until something is so."""
    end = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < end, f"not so after {seconds:.0f} s"
        time.sleep(0.1)


def everything(api: Transport) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield every object that can be listed, with its resource."""
    groups = api.call("GET", "/apis").body["groups"]
    roots = ["/api/v1", *(f"/apis/{group['preferredVersion']['groupVersion']}" for group in groups)]
    for root in roots:
        for resource in api.call("GET", root).body["resources"]:
            if "list" in resource["verbs"]:
                for item in api.call("GET", f"{root}/{resource['name']}").body["items"]:
                    yield resource["name"], item
