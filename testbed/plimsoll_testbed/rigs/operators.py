"""Operators of frameworks, on a real control plane: their programs as they are released, each a row of data.

An operator acts with the rights of its own manifests, and the webhooks among them are in force. Nobody plays its
images: what the containers of a framework would do, a test does. To build some of them: `python -m` this module, with
their names.
"""

from __future__ import annotations

import base64
import shutil
import sys
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
_LOADER: Final = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
"""In C where there is one: definitions of resources are megabytes."""
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
    certificates: str = "."
    """Where below its folder it reads the certificate of its webhooks."""
    environment: Mapping[str, str] = field(default_factory=dict)
    objects: Sequence[Mapping[str, Any]] = ()
    """What its deployment has beside the manifests."""
    awaits: Sequence[Path] = ()
    """Files at places that cannot be set: it waits until they are there, and reads none of them."""


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
KUBERAY: Final = Operator(
    name="kuberay",
    # Its webhook is no part of its default installation.
    manifests=("config/crd/bases", "config/rbac/role.yaml"),
    flags=(
        "--metrics-addr=0",
        "--health-probe-bind-address=127.0.0.1:{probes}",
        "--enable-leader-election=false",
    ),
)
TRAINING: Final = Operator(
    name="training-operator",
    manifests=(
        "manifests/base/crds",
        "manifests/base/rbac/role.yaml",
        "manifests/base/webhook/manifests.yaml",
    ),
    flags=(
        "--metrics-bind-address=0",
        "--health-probe-bind-address=127.0.0.1:{probes}",
        "--webhook-server-port={webhooks}",
    ),
    # It makes a certificate for the name of a Service, which a kubelet would mount from this Secret. Its server reads
    # ours, which is for loopback, below $TMPDIR. That server listens on all addresses, and no flag limits it.
    certificates="k8s-webhook-server/serving-certs",
    environment={"MY_POD_NAMESPACE": "default"},
    objects=(
        {
            "apiVersion": "v1",
            "kind": "Secret",
            "metadata": {"name": "training-operator-webhook-cert", "namespace": "default"},
        },
    ),
    awaits=(Path("/tmp/k8s-webhook-server/serving-certs/tls.crt"),),  # noqa: S108 - it says where
)
OPERATORS: Final = {each.name: each for each in (JOBSET, KUBERAY, TRAINING)}


class RunningOperator(AbstractContextManager["RunningOperator"]):
    """An operator on one control plane, while its block lasts.

    Args:
        plane: runs already.
        operator: what to start.
        user: of the control plane, without rights: gets those of the operator.
        environment: what it is told beside what its row says.
    """

    def __init__(
        self,
        plane: ControlPlane,
        operator: Operator,
        *,
        user: str,
        environment: Mapping[str, str] | None = None,
    ) -> None:
        self._plane = plane
        self._operator = operator
        self._user = user
        self._environment = dict(operator.environment) | dict(environment or {})
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
        certificates = folder / operator.certificates
        certificates.mkdir(parents=True, exist_ok=True)
        _, ca = server_context(certificates)
        probes, webhooks = free_port(), free_port()
        words = {"folder": folder, "probes": probes, "webhooks": webhooks}
        for name, text in operator.files.items():
            (folder / name).write_text(text.format(**words), encoding="utf-8")
        for file in operator.awaits:
            if not file.exists():  # it stays: another run may wait for it too
                file.parent.mkdir(parents=True, exist_ok=True)
                file.touch()
        self._process = SupervisedProcess(
            name=operator.name,
            command=[program, *(flag.format(**words) for flag in operator.flags)],
            folder=folder,
            log=self._plane.log / f"{operator.name}.log",
            environment={
                **self._environment,
                "KUBECONFIG": str(self._plane.kubeconfig(self._user)),
            },
        )
        objects = [*operator.objects, *_objects(manifests)]
        hooks = [obj for obj in objects if "webhooks" in obj]
        self._apply(*(obj for obj in objects if obj not in hooks), *self._bindings(objects))
        self._process.start()
        self._until(lambda: _ready(probes))
        kinds = [obj for obj in objects if obj["kind"] == "CustomResourceDefinition"]
        self._until(lambda: all(map(self._is_served, kinds)))
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

    def _is_served(self, definition: Mapping[str, Any]) -> bool:
        """Whether objects of a new kind can be listed: while their storage begins, the API server answers 429."""
        spec = definition["spec"]
        paths = [
            f"/apis/{spec['group']}/{version['name']}/{spec['names']['plural']}"
            for version in spec["versions"]
            if version["served"]
        ]
        answers = [
            self._plane.transport().call("GET", path, query={"limit": "1"}) for path in paths
        ]
        return all(answer.status == _OK for answer in answers)

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


def _objects(manifests: Sequence[Path]) -> Iterator[Mapping[str, Any]]:
    for file in manifests:
        for obj in yaml.load_all(file.read_text(encoding="utf-8"), Loader=_LOADER):
            if obj is not None and obj["kind"] != "Kustomization":
                yield obj


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
    if unknown := {*sys.argv[1:]} - OPERATORS.keys():
        sys.exit(f"no operator is called {', '.join(unknown)}; there are {', '.join(OPERATORS)}")
    for each in sys.argv[1:] or OPERATORS:
        with_manifests(each, OPERATORS[each].manifests)
