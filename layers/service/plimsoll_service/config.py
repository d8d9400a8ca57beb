"""What a deployment of the service decides: the one place that knows its environment variables.

Every field is required and is the variable of the same name in capitals; a test compares the fields
with `service.yaml`.
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
    members_table: str
    """DynamoDB: who was invited, and who was let in."""
    documents_table: str
    """DynamoDB: the documents of all tenants, each under its tenant's key."""
    documents_table_arn: str
    snapshots_bucket: str
    """S3: the snapshots of all tenants, each under its tenant's prefix."""
    snapshots_bucket_arn: str
    arrivals_queue: str
    """URL."""
    arrivals_dead_queue: str
    """URL; arrivals that no further attempt can help lie here with their reasons."""
    advice_queue: str
    """URL."""
    tenant_role: str
    """ARN of the role that reaches tenants' data, assumed for one tenant at a time."""
    token_secret: str
    """ARN of the secret that signs access tokens."""
    instruction_key: str
    """The KMS key that signs instructions: its ARN."""
    snapshots_per_minute: int
    """How many snapshots of one tenant are taken."""

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
        limit = values["snapshots_per_minute"]
        if not limit.isdecimal():
            raise BadInput(f"the environment variable SNAPSHOTS_PER_MINUTE is {limit!r}: no number")
        return cls(**values | {"snapshots_per_minute": int(limit)})
