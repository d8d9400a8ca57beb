"""What is kept of a cluster, read back.

A document that does not decode is a fault of ours, and never of whoever asks for it. It is told to the operator,
counts as absent, and is written over.
"""

from __future__ import annotations

from plimsoll_service.services.ports import Document, TenantData
from plimsoll_service.wire.documents import Malformed, decode


def stored[T](data: TenantData, cluster: str, key: str, kind: type[T]) -> tuple[T | None, int]:
    """Return what a document holds, and the version to write over; None: nothing that can be read, 0: nothing."""
    found = data.get(cluster, key)
    return (None, 0) if found is None else (read(data, cluster, found, kind), found.version)


def read[T](data: TenantData, cluster: str, found: Document, kind: type[T]) -> T | None:
    """Return what a document holds, or None: it cannot be read."""
    try:
        return decode(found.body, kind)
    except Malformed as error:
        data.fault(cluster, found.key, str(error))
        return None
