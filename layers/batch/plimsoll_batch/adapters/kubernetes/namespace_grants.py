"""The labels of a Namespace that grant it queues."""

from __future__ import annotations

from msgspec import Raw

from plimsoll.adapters.kubernetes import schema
from plimsoll.adapters.kubernetes.decoding import decoded, naming
from plimsoll_batch.domain.quota import granted_by


@naming("Namespace")
def read_grants(obj: Raw) -> tuple[str, frozenset[str]]:
    """Read the name of a Namespace, and the queues that it is granted."""
    meta = decoded(obj, schema.Named).metadata
    return meta.name, granted_by(meta.labels)
