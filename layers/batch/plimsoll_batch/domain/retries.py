"""How long a gang waits after what failed, before it is tried again."""

from __future__ import annotations

from datetime import timedelta
from typing import Final

BACKOFF: Final = timedelta(seconds=10)
"""After the first failure; twice as long after each more in a row."""
LONGEST_BACKOFF: Final = timedelta(minutes=10)


def pause_after(failures: int) -> timedelta:
    """Return how long to wait after so many failures in a row."""
    return min(LONGEST_BACKOFF, BACKOFF * (1 << min(max(0, failures - 1), 10)))
