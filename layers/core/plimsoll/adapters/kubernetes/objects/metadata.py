"""What every object says of itself."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Final

from plimsoll.adapters.kubernetes import schema
from plimsoll.domain.fields import Field
from plimsoll.domain.kubernetes import Ref, names

_LONG_AGO: Final = datetime(1970, 1, 1, tzinfo=UTC)
"""The age of an object that does not say when it was made."""
_READ: Final = {
    names.MIRROR,
    names.DELETION_COST,
    names.DO_NOT_DISRUPT,
    names.SAFE_TO_EVICT,
    *names.REVISIONS,
}
"""The annotations that are kept, beside those of ours: an object may carry 256 KiB of others."""
LONGEST_GRACE: Final = 366 * 24 * 3600
"""Seconds. A longer grace period counts as this one: its owner means that the pod never has to stop."""


def annotations_of(meta: schema.Metadata) -> Mapping[str, str]:
    """Return the annotations that are read: ours, and a few others."""
    return {
        key: value
        for key, value in meta.annotations.items()
        if key in _READ or key.startswith(names.PREFIX)
    }


def ref(kind: str, meta: schema.Metadata) -> Ref:
    """Return what names an object, of the kind that its list has."""
    return Ref(kind, meta.namespace, meta.name)


def created(meta: schema.Metadata) -> datetime:
    """Return when an object was made; long ago where it does not say."""
    created = Field(meta.creation_timestamp, "metadata.creationTimestamp").optional_time()
    return created or _LONG_AGO


def condition(conditions: tuple[schema.Condition, ...], kind: str) -> schema.Condition | None:
    """Return the condition of that type."""
    return next((condition for condition in conditions if condition.type == kind), None)


def holds(condition: schema.Condition | None) -> bool:
    """Whether a condition is there and True."""
    return condition is not None and condition.status == "True"


def bounded(said: int, most: int) -> int:
    """Return a number of things: at least 0, and `most` where there are more."""
    return min(max(said, 0), most)
