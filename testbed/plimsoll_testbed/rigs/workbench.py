"""What a developer's machine says about the rigs: the one reader of the environment here."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Self


@dataclass(frozen=True, slots=True, kw_only=True)
class Workbench:
    """What a developer's machine says about the rigs. Nothing of it is known to a deployment."""

    control_plane: Path | None
    """PLIMSOLL_CONTROL_PLANE: a folder with all programs of a Kubernetes control plane."""
    kubebuilder_assets: Path | None
    """KUBEBUILDER_ASSETS: setup-envtest's folder, with etcd and kube-apiserver."""
    kubernetes: str
    """PLIMSOLL_KUBERNETES: the minor that control planes are of where nobody names one; empty: the default."""
    cache: Path
    """Where what was built is kept: $XDG_CACHE_HOME/plimsoll, or ~/.cache/plimsoll."""

    @classmethod
    def from_env(cls, env: Mapping[str, str]) -> Self:
        """Read the environment; an empty variable is none.

        https://specifications.freedesktop.org/basedir-spec/latest/
        """
        home = Path(env.get("HOME") or Path.home())
        return cls(
            control_plane=_folder(env, "PLIMSOLL_CONTROL_PLANE"),
            kubebuilder_assets=_folder(env, "KUBEBUILDER_ASSETS"),
            kubernetes=env.get("PLIMSOLL_KUBERNETES", ""),
            cache=(_folder(env, "XDG_CACHE_HOME") or home / ".cache") / "plimsoll",
        )

    @classmethod
    def of_this_process(cls) -> Self:
        """Read this process's environment."""
        return cls.from_env(os.environ)


def _folder(env: Mapping[str, str], name: str) -> Path | None:
    return Path(env[name]).expanduser().absolute() if env.get(name) else None
