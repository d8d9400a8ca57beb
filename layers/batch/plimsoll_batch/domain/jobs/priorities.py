"""What the stated priorities of Jobs count for."""

from __future__ import annotations

from collections.abc import Mapping

from plimsoll_batch.domain.names import PRIORITY

type Priorities = Mapping[str, int]
"""Name -> priority, as configured. Empty: Jobs state numbers."""


def rank_of(stated: int | str, priorities: Priorities) -> int:
    """Return what a stated priority counts for; an unknown name counts nothing, a number no more than the highest name."""
    if isinstance(stated, str):
        return priorities.get(stated, 0)
    return min([stated, *([max(priorities.values())] if priorities else [])])


def why_unranked(stated: int | str, priorities: Priorities) -> str | None:
    """Say why a stated priority is none; None where it is one. The default, 0, always is."""
    known = ", ".join(sorted(priorities, key=lambda name: -priorities[name]))
    if isinstance(stated, str) and stated not in priorities:
        say = f"one of {known}" if known else "a whole number: the queues have no named priorities"
    elif isinstance(stated, int) and stated and priorities:
        say = f"one of {known}"
    else:
        return None
    return f"annotation {PRIORITY}: must be {say}, not {stated}"
