"""`infra/cluster` on a control plane, applied as people apply it: each file, in its order."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from kubernetes.config.kube_config import new_client_from_config
from kubernetes.dynamic import DynamicClient

from plimsoll.adapters.kubernetes import Answer
from plimsoll.drill.controlplane import ControlPlane
from tests.contract.rights import everything

PATIENCE = 30.0
"""Seconds until a policy that was applied must hold; usually one or two."""


def install(plane: ControlPlane, folder: Path) -> None:
    """Apply everything, and return when it holds."""
    client = DynamicClient(
        new_client_from_config(str(plane.kubeconfig())), cache_file=str(folder / "discovery.json")
    )
    for document in everything():
        kind = client.resources.get(api_version=document["apiVersion"], kind=document["kind"])
        client.server_side_apply(kind, body=document, field_manager="tests", force_conflicts=True)
    until(lambda: "'plimsoll-lease'" in said(a_lease(plane, "somebody-elses")))


def a_lease(plane: ControlPlane, name: str) -> Answer:
    """Try to make a Lease in our namespace."""
    return plane.transport("plimsoll").call(
        "POST",
        "/apis/coordination.k8s.io/v1/namespaces/plimsoll/leases",
        query={"dryRun": "All"},
        body={"metadata": {"name": name}},
        content_type="application/json",
    )


def said(answer: Answer) -> str:
    body: Any = answer.body
    return str(body.get("message", "")) if isinstance(body, dict) else str(body)


def until(holds: Callable[[], bool]) -> None:
    """Wait until something is so."""
    end = time.monotonic() + PATIENCE
    while not holds():
        assert time.monotonic() < end, f"not so after {PATIENCE:.0f} s"
        time.sleep(0.1)
