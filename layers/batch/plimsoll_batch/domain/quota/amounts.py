"""Amounts of the planner, as people write them: cores, units of bytes, pieces."""

from __future__ import annotations

from typing import Final

_CORE: Final = 1000
_BYTES: Final = {"memory", "ephemeral-storage"}
_UNITS: Final = {"Pi": 2**50, "Ti": 2**40, "Gi": 2**30, "Mi": 2**20, "Ki": 2**10}


def amount_text(resource: str, amount: int) -> str:
    """Return an amount of a resource with its unit; bytes are rounded to a tenth of theirs."""
    if resource == "cpu":
        return f"{amount}m" if amount % _CORE else str(amount // _CORE)
    if resource in _BYTES:
        for unit, size in _UNITS.items():
            if abs(amount) >= size:
                tenths = round(amount / size, 1)
                return f"{int(tenths) if tenths.is_integer() else tenths}{unit}"
    return str(amount)
