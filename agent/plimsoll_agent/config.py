"""What a deployment decides: the one place of the agent that knows the names of environment variables."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Self

from plimsoll.domain.errors import BadInput

_MEBIBYTE: Final = 2**20


@dataclass(frozen=True, slots=True, kw_only=True)
class Config:
    """The settings of one agent."""

    service: str
    """The address of the service."""
    spool: Path
    """The folder that keeps what the service has not taken yet."""
    spool_bytes: int
    """What that may take: at a snapshot a minute 64 MiB are hours of a cluster of 5,000 pods."""
    metrics_port: int
    """Where Prometheus asks; 0 takes a free one."""
    gpu_metrics: str = ""
    """Who tells of GPUs: NAMESPACE/SERVICE of dcgm-exporter, the address of a Prometheus, or empty for nobody."""

    @classmethod
    def from_env(cls, env: Mapping[str, str]) -> Self:
        """Read the environment.

        Raises:
            BadInput: a variable is missing or no number.
        """
        try:
            return cls(
                service=env["PLIMSOLL_SERVICE"],
                spool=Path(env["PLIMSOLL_SPOOL"]),
                spool_bytes=int(env["PLIMSOLL_SPOOL_MIB"]) * _MEBIBYTE,
                metrics_port=int(env["PLIMSOLL_METRICS_PORT"]),
                gpu_metrics=env.get("PLIMSOLL_GPU_METRICS", ""),
            )
        except KeyError as missing:
            raise BadInput(f"the environment variable {missing.args[0]} is missing") from missing
        except ValueError as error:
            raise BadInput(f"the environment: {error}") from error


def config() -> Config:
    """Return the settings of this process."""
    return Config.from_env(os.environ)


def gpu_metrics_port() -> int:
    """Return where Prometheus asks the agent that changes GPUs, which has no other setting.

    Raises:
        BadInput: the variable is missing or no number.
    """
    text = os.environ.get("PLIMSOLL_METRICS_PORT", "")
    if not text.isdecimal():
        raise BadInput(f"the environment variable PLIMSOLL_METRICS_PORT is {text!r}, and no port")
    return int(text)


def api_server() -> str:
    """Return where the API server is, as Kubernetes tells every pod.

    https://kubernetes.io/docs/tasks/run-application/access-api-from-pod/

    Raises:
        BadInput: this is no pod.
    """
    host, port = (os.environ.get(f"KUBERNETES_SERVICE_{part}") for part in ("HOST", "PORT"))
    if not host or not port:
        raise BadInput("this is no pod of a cluster: run it there, or as `plimsoll agent run`")
    return f"https://[{host}]:{port}" if ":" in host else f"https://{host}:{port}"
