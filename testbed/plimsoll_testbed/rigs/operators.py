"""Operators of frameworks, on a real control plane: their programs as they are released, each a row of data.

An operator acts with the rights of its own manifests, and its webhooks are in force. Nobody plays its images: what
the containers of a framework would do, a test does.
"""

from __future__ import annotations

import base64
import shutil
import tempfile
import time
import urllib.request
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, Self, override

import yaml

from plimsoll.domain.errors import Refused
from plimsoll_testbed.rigs.certificates import server_context
from plimsoll_testbed.rigs.cluster import installation
from plimsoll_testbed.rigs.controlplane import ControlPlane
from plimsoll_testbed.rigs.controlplane.builds import with_manifests
from plimsoll_testbed.rigs.supervised import SupervisedProcess, free_port

READY_SECONDS: Final = 120.0
_POLL_SECONDS: Final = 0.1
_OK: Final = 200
_RBAC: Final = "rbac.authorization.k8s.io"


@dataclass(frozen=True, slots=True, kw_only=True)
class Operator:
    """One operator: its module is `infra/local/<name>`."""

    name: str
    manifests: Sequence[str]
    """In its source: custom resource definitions, its ClusterRole, its webhooks."""
    flags: Sequence[str]
    """`{folder}`, `{probes}` and `{webhooks}` stand for its folder and two free ports."""
    files: Mapping[str, str] = field(default_factory=dict)
    """Name -> text with the same words, in its folder."""


JOBSET: Final = Operator(
    name="jobset",
    manifests=(
        "config/components/crd/bases",
        "config/components/rbac/role.yaml",
        "config/components/webhook/manifests.yaml",
    ),
    flags=(
        "--config={folder}/configuration.yaml",
        "--metrics-bind-address=0",
        "--health-probe-bind-address=127.0.0.1:{probes}",
        "--leader-elect=false",
    ),
    files={
        "configuration.yaml": """
apiVersion: config.jobset.x-k8s.io/v1alpha1
kind: Configuration
internalCertManagement: {{enable: false}}
webhook: {{host: 127.0.0.1, port: {webhooks}, certDir: {folder}}}
"""
    },
)
OPERATORS: Final = (JOBSET,)


class RunningOperator(AbstractContextManager["RunningOperator"]):
    """An operator on one control plane, while its block lasts.

    Args:
        plane: runs already.
        operator: what to start.
        user: of the control plane, without rights: gets those of the operator.
    """

    def __init__(self, plane: ControlPlane, operator: Operator, *, user: str) -> None:
        self._plane = plane
        self._operator = operator
        self._user = user
        self._folder = Path()
        self._process: SupervisedProcess | None = None

    @override
    def __enter__(self) -> Self:
        """Build it where that was not done yet, apply its manifests, start it, and wait until it is ready.

        Raises:
            Refused: it cannot be built, or does not start.
        """
        operator = self._operator
        program, manifests = with_manifests(operator.name, operator.manifests)
        self._folder = folder = Path(tempfile.mkdtemp(prefix=f"plimsoll-{operator.name}-"))
        _, ca = server_context(folder)
        probes, webhooks = free_port(), free_port()
        words = {"folder": folder, "probes": probes, "webhooks": webhooks}
        for name, text in operator.files.items():
            (folder / name).write_text(text.format(**words), encoding="utf-8")
        self._process = SupervisedProcess(
            name=operator.name,
            command=[program, *(flag.format(**words) for flag in operator.flags)],
            folder=folder,
            log=self._plane.log / f"{operator.name}.log",
            environment={"KUBECONFIG": str(self._plane.kubeconfig(self._user))},
        )
        objects = [
            obj
            for file in manifests
            for obj in yaml.safe_load_all(file.read_text(encoding="utf-8"))
            if obj is not None
        ]
        hooks = [obj for obj in objects if "webhooks" in obj]
        self._apply(*(obj for obj in objects if obj not in hooks), *self._bindings(objects))
        self._process.start()
        self._until(lambda: _ready(probes))
        self._apply(*(_on_loopback(hook, webhooks, ca) for hook in hooks))
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
            raise Refused(f"{self._operator.name} ended by itself:\n{words}")

    def _apply(self, *objects: Mapping[str, Any]) -> None:
        for obj in objects:
            installation.apply(self._plane.transport(), obj, source=self._operator.name)

    def _bindings(self, objects: Sequence[Mapping[str, Any]]) -> Iterator[Mapping[str, Any]]:
        for role in objects:
            if role["kind"] == "ClusterRole":
                name = role["metadata"]["name"]
                yield {
                    "apiVersion": f"{_RBAC}/v1",
                    "kind": "ClusterRoleBinding",
                    "metadata": {"name": name},
                    "roleRef": {"apiGroup": _RBAC, "kind": "ClusterRole", "name": name},
                    "subjects": [{"apiGroup": _RBAC, "kind": "User", "name": self._user}],
                }

    def _until(self, holds: Callable[[], bool]) -> None:
        assert self._process is not None  # noqa: S101 - it was started
        end = time.monotonic() + READY_SECONDS
        while not holds():
            if time.monotonic() > end or self._process.ended:
                raise Refused(f"{self._operator.name} is not ready:\n{self._process.tail()}")
            time.sleep(_POLL_SECONDS)


def _ready(port: int) -> bool:
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/readyz", timeout=1) as answer:
            return bool(answer.status == _OK)
    except OSError:
        return False


def _on_loopback(hooks: Mapping[str, Any], port: int, ca: str) -> Mapping[str, Any]:
    """Return the configuration of webhooks with the address of a process instead of a Service's."""
    bundle = base64.b64encode(ca.encode()).decode()
    return {
        **hooks,
        "webhooks": [
            {
                **hook,
                "clientConfig": {
                    "url": f"https://127.0.0.1:{port}{hook['clientConfig']['service']['path']}",
                    "caBundle": bundle,
                },
            }
            for hook in hooks["webhooks"]
        ],
    }


if __name__ == "__main__":
    for each in OPERATORS:
        with_manifests(each.name, each.manifests)
