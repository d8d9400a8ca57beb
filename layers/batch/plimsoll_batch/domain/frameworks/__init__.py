"""The kinds of objects that queues hold beside bare pods: one row of data for each."""

from __future__ import annotations

from plimsoll_batch.domain.frameworks.paths import Path, all_at, at
from plimsoll_batch.domain.frameworks.rows import (
    Form,
    Framework,
    RoleSource,
    Says,
)
from plimsoll_batch.domain.frameworks.table import (
    FRAMEWORKS,
    JOB,
    NAMES,
    is_child,
    rows_of,
)

__all__ = [
    "FRAMEWORKS",
    "JOB",
    "NAMES",
    "Form",
    "Framework",
    "Path",
    "RoleSource",
    "Says",
    "all_at",
    "at",
    "is_child",
    "rows_of",
]
