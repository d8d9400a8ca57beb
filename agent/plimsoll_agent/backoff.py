"""How long to wait after failures, so that agents do not come back together after an outage."""

from __future__ import annotations

from random import SystemRandom
from typing import Final

FIRST_SECONDS: Final = 2.0
MOST_SECONDS: Final = 300.0

_RANDOM: Final = SystemRandom()


def pause_after(failures: int, *, asked: float | None = None) -> float:
    """Return the seconds to wait after so many failures in a row: full jitter, below a doubling bound.

    https://aws.amazon.com/builders-library/timeouts-retries-and-backoff-with-jitter/

    Args:
        failures: at least 1.
        asked: what the other side asked for; it is waited for, up to `MOST_SECONDS`.
    """
    bound = min(MOST_SECONDS, FIRST_SECONDS * 2 ** min(failures, 16))
    return min(MOST_SECONDS, asked or 0.0) + _RANDOM.uniform(0.0, bound)
