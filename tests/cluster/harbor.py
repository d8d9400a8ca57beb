"""A node that `plimsoll drain` empties, as people run it: a process with a kubeconfig."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
import yaml

from plimsoll.domain.kubernetes import RELEASED
from plimsoll_testbed.rigs.controlplane import ControlPlane
from plimsoll_testbed.rigs.endpoints import ReadyEndpoints
from tests.cluster.ground import Ground
from tests.contract.rights import CLUSTER
from tests.support.fake_clusters import a_deployment, a_template

type Json = dict[str, Any]

USER = "stranger"
"""Who drains: nobody that a control plane gives rights to, but for those of `drainer`."""
_CALL = """
import signal
signal.signal(signal.SIGINT, signal.default_int_handler)  # ignored in what a shell starts in the background
from plimsoll_cli import main
main()
"""
PLIMSOLL = (sys.executable, "-c", _CALL)
SECONDS = 240
"""Until a drain that does not end is killed, and its test fails."""
BINDING = "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings"
ROLES = "/apis/rbac.authorization.k8s.io/v1/clusterroles"


@contextmanager
def drainer(plane: ControlPlane) -> Iterator[None]:
    """Give the user the rights that docs/guides/kubectl-drain.md names, and take them away again."""
    api = plane.transport()
    role, binding = drainers_role(), drainers_binding()
    for path, body in ((ROLES, role), (BINDING, binding)):
        answer = api.call("POST", path, body=body, content_type="application/json")
        assert answer.status == 201, answer.body
    yield
    for path in (BINDING, ROLES):
        api.call("DELETE", f"{path}/drainer")


def drainers_role() -> Json:
    """What a plan reads is what the base role may list."""
    [base] = [
        found
        for found in yaml.safe_load_all((CLUSTER / "rbac.yaml").read_text())
        if found["kind"] == "ClusterRole"
    ]
    reads = [{**rule, "verbs": ["list"]} for rule in base["rules"] if "list" in rule["verbs"]]
    writes = [
        {"apiGroups": [""], "resources": ["nodes", "pods"], "verbs": ["patch"]},
        {"apiGroups": [""], "resources": ["pods/eviction"], "verbs": ["create"]},
    ]
    return {"metadata": {"name": "drainer"}, "rules": reads + writes}


def drainers_binding() -> Json:
    group = "rbac.authorization.k8s.io"
    return {
        "metadata": {"name": "drainer"},
        "roleRef": {"apiGroup": group, "kind": "ClusterRole", "name": "drainer"},
        "subjects": [{"apiGroup": group, "kind": "User", "name": USER}],
    }


class Harbor:
    """A ground whose pods all started on the node `old`; `new` joined when they were Ready."""

    def __init__(
        self,
        ground: Ground,
        endpoints: ReadyEndpoints,
        *manifests: Json,
        made: Callable[[str, int, Json], Json] = a_deployment,
        **replicas: int,
    ) -> None:
        self.ground, self.endpoints = ground, endpoints
        [self.old] = ground.nodes("old")
        ground.apply(*manifests)
        for app, count in replicas.items():
            template = a_template(app, annotations={"startup": "3s", "stop": "1s"})
            service = {
                "apiVersion": "v1",
                "kind": "Service",
                "metadata": {"name": app},
                "spec": {"selector": {"app": app}, "ports": [{"port": 80}]},
            }
            ground.apply(made(app, count, template), service)
        ground.until(
            lambda: all(
                len(endpoints.ready((ground.name, app))) == count for app, count in replicas.items()
            )
        )
        ground.until(lambda: all(p["spec"].get("nodeName") for p in ground.pods()))
        [self.new] = ground.nodes("new")
        self.began = datetime.now(UTC)

    def drain(self, *args: str) -> tuple[int, str]:
        """Run it to its end; return its exit status and all that it printed."""
        return finish(self.start(*args))

    def start(
        self, *args: str, command: tuple[str | Path, ...] = PLIMSOLL
    ) -> subprocess.Popen[str]:
        here = {"KUBECONFIG": str(self.ground.plane.kubeconfig(USER))}
        return subprocess.Popen(
            [*command, "drain", *(args or (self.old,))],
            env=os.environ | here,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )

    @contextmanager
    def until_released(self) -> Iterator[subprocess.Popen[str]]:
        """Start a drain, and come back when a pod is released whose replacement still starts."""
        with self.start() as process:
            try:
                self.ground.until(self.released)
                yield process
            finally:
                process.kill()

    def on(self, node: str) -> list[str]:
        return [
            p["metadata"]["name"] for p in self.ground.pods() if p["spec"].get("nodeName") == node
        ]

    def released(self) -> list[Json]:
        return [p for p in self.ground.pods() if RELEASED in p["metadata"].get("annotations", {})]

    def versions(self) -> list[str]:
        node = self.ground.get(f"/api/v1/nodes/{self.old}")
        return [node["spec"].get("unschedulable", False)] + [
            pod["metadata"]["resourceVersion"] for pod in self.ground.pods()
        ]

    def seconds_below(self, app: str, count: int) -> float:
        service = self.ground.name, app
        return self.endpoints.seconds_below(count, service, self.began, datetime.now(UTC))


def finish(process: subprocess.Popen[str]) -> tuple[int, str]:
    try:
        said, _ = process.communicate(timeout=SECONDS)
    except subprocess.TimeoutExpired:
        process.kill()
        said, _ = process.communicate()
        pytest.fail(f"the drain did not end within {SECONDS} s: {said}")
    return process.returncode, said
