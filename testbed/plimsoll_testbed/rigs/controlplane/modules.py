"""The Go modules that hold the programs of a control plane: `infra/local/controlplane/<minor>`.

Each pins one release of Kubernetes from source, because no registry ships its programs. A program
that a module does not name comes from the default's: kwok needs a newer client-go than an older
Kubernetes has, and etcd does not care.
"""

from __future__ import annotations

import hashlib
import platform
import re
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Self

from plimsoll.domain.errors import BadInput
from plimsoll_simulation.checkout import Checkout

DEFAULT: Final = "1.37"
KUBERNETES: Final = "k8s.io/kubernetes"
CONTROL_PLANE: Final[Mapping[str, str]] = {
    # program -> the package it is built from
    "kwok": "sigs.k8s.io/kwok/cmd/kwok",
    "etcd": "go.etcd.io/etcd/server/v3",
    "kube-scheduler": f"{KUBERNETES}/cmd/kube-scheduler",
    "kube-controller-manager": f"{KUBERNETES}/cmd/kube-controller-manager",
    "kube-apiserver": f"{KUBERNETES}/cmd/kube-apiserver",
    "kubectl": f"{KUBERNETES}/cmd/kubectl",
}
"""What a control plane consists of, and kubectl."""
PROGRAMS: Final[Mapping[str, str]] = {
    **CONTROL_PLANE,
    "karpenter": "sigs.k8s.io/karpenter/kwok",
    "jaeger": "github.com/jaegertracing/jaeger/cmd/jaeger",
    "jobset": "sigs.k8s.io/jobset",
    "kuberay": "github.com/ray-project/kuberay/ray-operator",
    "training-operator": "github.com/kubeflow/training-operator/cmd/training-operator.v1",
}
_VERSION: Final = re.compile(r"^\s*(\S+) (v[0-9]\S*)(?: // indirect)?$", re.MULTILINE)
_TOOL: Final = re.compile(r"^(?:tool |\t)(\S+/\S+)$", re.MULTILINE)
_GO: Final = re.compile(r"^go ([0-9.]+)$", re.MULTILINE)


@dataclass(frozen=True, slots=True, kw_only=True)
class Module:
    """One go.mod, and what it pins."""

    folder: Path
    text: str
    """The go.mod."""

    @classmethod
    def of(cls, version: str, root: Path | None = None) -> Self:
        """Return the module of a minor version of Kubernetes.

        Args:
            version: for example `1.37`.
            root: the folder of all modules; this checkout's where it is None.

        Raises:
            BadInput: there is none.
        """
        root = root or modules_folder()
        folder = root / version
        if not (folder / "go.mod").is_file():
            raise BadInput(
                f"no control plane is pinned for Kubernetes {version}; there are "
                f"{', '.join(versions(root)) or 'none'} in {root}"
            )
        return cls(folder=folder, text=(folder / "go.mod").read_text(encoding="utf-8"))

    @property
    def programs(self) -> Sequence[str]:
        """The programs that this module builds."""
        packages = set(_TOOL.findall(self.text))
        return [name for name, package in PROGRAMS.items() if package in packages]

    @property
    def go(self) -> str:
        """The least version of Go that builds it."""
        found = _GO.search(self.text)
        if found is None:
            raise BadInput(f"{self.folder / 'go.mod'} has no line `go …`")
        return found.group(1)

    @property
    def kubernetes(self) -> str:
        """The release of Kubernetes that it builds programs of, for example `v1.37.2`; else empty."""
        ours = any(PROGRAMS[name].startswith(KUBERNETES) for name in self.programs)
        return self._version(KUBERNETES) if ours else ""

    @property
    def label(self) -> str:
        """A name that changes whenever the programs would: versions, a digest, the platform."""
        pins = [f"kubernetes-{self.kubernetes}"] if self.kubernetes else []
        pins += [
            f"{name}-{self._version(self.module_of(name))}"
            for name in self.programs
            if not PROGRAMS[name].startswith(KUBERNETES)
        ]
        sums = (self.folder / "go.sum").read_bytes()
        digest = hashlib.sha256(self.text.encode() + sums).hexdigest()[:8]
        return "-".join([*pins, digest, sys.platform, platform.machine().lower()])

    def module_of(self, program: str) -> str:
        """Return the path of the module that a program is built from.

        Raises:
            BadInput: this module does not require it.
        """
        package = PROGRAMS[program]
        found = [path for path in self._versions() if f"{package}/".startswith(f"{path}/")]
        if not found:
            raise BadInput(f"{self.folder / 'go.mod'} does not require the module of {package}")
        return max(found, key=len)

    def _versions(self) -> Mapping[str, str]:
        return dict(_VERSION.findall(self.text))

    def _version(self, module: str) -> str:
        found = self._versions().get(module)
        if found is None:
            raise BadInput(f"{self.folder / 'go.mod'} does not require {module}")
        return str(found)


def modules_folder() -> Path:
    """Return the folder of all modules of this checkout."""
    return Checkout.find().root / "infra" / "local" / "controlplane"


def versions(root: Path | None = None) -> Sequence[str]:
    """Return the minors that are pinned, the newest first."""
    found = (root or modules_folder()).glob("*/go.mod")
    return sorted(
        (file.parent.name for file in found),
        key=lambda name: [int(part) for part in name.split(".")],
        reverse=True,
    )
