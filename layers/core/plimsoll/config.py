"""What a deployment decides: the one place that knows the names of environment variables.

Every field is required and is the variable of the same name in capitals, so that a forgotten line
in the template fails at the first call and by name, instead of working with a silent default.
A test compares the fields with the template.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any, Final, Self

from plimsoll.domain.errors import BadInput


@dataclass(frozen=True, slots=True, kw_only=True)
class Config:
    """One stack's settings."""

    aws_region: str
    """The region of the stack and of its clusters; Lambda sets it."""
    clusters_table: str
    """DynamoDB: the registry of clusters."""
    nodes_table: str
    """DynamoDB: instance -> node."""
    reports_table: str
    """DynamoDB: reports of interruptions."""
    notices_queue: str
    """URL."""
    notices_dead_queue: str
    """URL; notices that nothing can mend lie here with their reasons."""
    ticks_queue: str
    """URL."""
    kill_switch: bool
    """No write to any cluster or node group, whatever its mode."""
    accept_drills: bool
    """Whether notices of the source `plimsoll.drill` are taken as real."""

    @classmethod
    def from_env(cls, env: Mapping[str, str]) -> Self:
        """Read the environment, `os.environ` in Lambda.

        Raises:
            BadInput: a variable is missing or unreadable; the message names it.
        """
        values: dict[str, Any] = {
            field.name: _read(field.name.upper(), field.type, env) for field in fields(cls)
        }
        return cls(**values)


def in_lambda() -> bool:
    """Whether this process is a Lambda function.

    https://docs.aws.amazon.com/lambda/latest/dg/configuration-envvars.html#configuration-envvars-runtime
    """
    return "AWS_LAMBDA_FUNCTION_NAME" in os.environ


@dataclass(frozen=True, slots=True, kw_only=True)
class Workbench:
    """What a developer's machine says about the rigs. Nothing of it is known to a deployment."""

    control_plane: Path | None
    """PLIMSOLL_CONTROL_PLANE: a folder with all programs of a Kubernetes control plane."""
    kubebuilder_assets: Path | None
    """KUBEBUILDER_ASSETS: setup-envtest's folder, with etcd and kube-apiserver."""
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
            cache=(_folder(env, "XDG_CACHE_HOME") or home / ".cache") / "plimsoll",
        )

    @classmethod
    def of_this_process(cls) -> Self:
        """Read this process's environment."""
        return cls.from_env(os.environ)


def _folder(env: Mapping[str, str], name: str) -> Path | None:
    return Path(env[name]).expanduser().absolute() if env.get(name) else None


def _read(name: str, kind: Any, env: Mapping[str, str]) -> object:
    if name not in env:
        raise BadInput(f"the environment variable {name} is missing: template.yaml sets it")
    try:
        return _READERS[kind](env[name])
    except ValueError as error:
        raise BadInput(f"the environment variable {name} is {env[name]!r}: {error}") from error


def _switch(text: str) -> bool:
    if text not in {"true", "false"}:
        raise ValueError('it must be "true" or "false"')
    return text == "true"


# Annotations are strings here, because of `from __future__ import annotations`.
_READERS: Final[Mapping[str, Callable[[str], object]]] = {
    "str": str,
    "bool": _switch,
}
