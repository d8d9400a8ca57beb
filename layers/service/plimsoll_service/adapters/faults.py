"""How the stores tell the operator that a row, or an object of the bucket, cannot be read."""

from __future__ import annotations

import logging
from typing import Protocol


class Tell(Protocol):
    """Tells the operator of a fault of ours."""

    def __call__(self, **facts: str) -> None:
        """Tell the facts."""
        ...


def logged(**facts: str) -> None:
    """Log the facts, where nobody counts faults: on the command line."""
    said = ", ".join(f"{name} {value!r}" for name, value in facts.items())
    logging.getLogger(__name__).error("a row is not read, and counts as absent: %s", said)
