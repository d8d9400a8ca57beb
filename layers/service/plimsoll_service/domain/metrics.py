"""The metrics that the service's alarms read; a test compares them with the template."""

from __future__ import annotations

from enum import StrEnum


class ServiceMetric(StrEnum):
    """The name of a metric that counts."""

    AGENTS_SILENT = "AgentsSilent"
    """Agents of the optimizer that had sent no snapshot for ten minutes when advice about them was due."""
    FAULTS = "ServiceFaults"
    """Requests of holders of a token, and lookups of tokens, that failed by a fault of the optimizer, and stored
    rows that could not be read."""
    SNAPSHOTS_REFUSED = "SnapshotsRefused"
    """Acknowledged snapshots that make no whole one: their agent never sent their base, or made too much of it."""
