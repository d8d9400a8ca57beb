"""What a deployment of the queues decides: the one place that knows its environment variables.

Every field is required and is the variable of the same name in capitals; a test compares the fields
with `batch.yaml`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any, Self

from plimsoll.domain.errors import BadInput


@dataclass(frozen=True, slots=True, kw_only=True)
class Config:
    """One stack's settings."""

    aws_region: str
    """Lambda sets it."""
    clusters_table: str
    """DynamoDB: the registered clusters, of the stack of the interruption path. It is only read."""
    wake_ups_queue: str
    """URL."""
    pods_per_second: int
    """How many pods a control plane is given."""

    @classmethod
    def from_env(cls, env: Mapping[str, str]) -> Self:
        """Read the environment, `os.environ` in Lambda.

        Raises:
            BadInput: a variable is missing or unreadable; the message names it.
        """
        missing = [f.name.upper() for f in fields(cls) if f.name.upper() not in env]
        if missing:
            raise BadInput(f"environment variables are missing: {', '.join(missing)}")
        values: dict[str, Any] = {f.name: env[f.name.upper()] for f in fields(cls)}
        rate = values["pods_per_second"]
        if not rate.isdecimal() or not int(rate):
            raise BadInput(f"the environment variable PODS_PER_SECOND is {rate!r}: no rate")
        return cls(**values | {"pods_per_second": int(rate)})
