"""What a deployment of the queues decides: the one place that knows its environment variables.

Every field is required and is the variable of the same name in capitals; a test compares the fields
with `batch.yaml`.
"""

from __future__ import annotations

from dataclasses import dataclass

from plimsoll.config import Settings


@dataclass(frozen=True, slots=True, kw_only=True)
class Config(Settings):
    """One stack's settings."""

    aws_region: str
    """Lambda sets it."""
    clusters_table: str
    """DynamoDB: the registered clusters, of the stack of the interruption path. It is only read."""
    nodes_table: str
    """DynamoDB: instance -> node, of the same stack. It is only read."""
    times_table: str
    """DynamoDB: how long checkpoints took, of the same stack. It is only read; empty: nothing is known."""
    preemptions_table: str
    """DynamoDB: the preemptions of the last 30 days."""
    accept_drills: bool
    """Whether notices of the source `plimsoll.drill` count."""
    wake_ups_queue: str
    """URL."""
    grow_groups: bool
    """Whether node groups are asked for what gangs lack."""
    pools_table: str
    """DynamoDB: the memory of capacity pools, of the same stack. It is only read, and only for that."""
    reports_table: str
    """DynamoDB: where it is told what was added, so that it is taken back; of the same stack."""
    pods_per_second: int
    """How many pods a control plane is given."""
