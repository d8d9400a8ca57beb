"""How long a drill waits until its cluster is Ready."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import pytest

from plimsoll_simulation.rigs.warmup import LIMIT, NeverReadyError, warm_up
from tests.support.cli_environment import StillClock

STEPS = int(LIMIT.total_seconds())


def falling(count: int, every: int) -> Iterator[Sequence[str]]:
    """Yield what is not Ready: one thing less after so many steps, down to nothing."""
    for left in range(count, 0, -1):
        for _ in range(every):
            yield [f"app-{n}" for n in range(left)]
    while True:
        yield []


def test_real_controllers_have_their_time_as_long_as_more_becomes_ready():
    words = falling(4, STEPS - 1)
    warm_up(StillClock(), lambda: next(words), while_it_goes_on=True)
    words = falling(4, STEPS - 1)
    with pytest.raises(NeverReadyError, match="app-0"):
        warm_up(StillClock(), lambda: next(words))


def test_what_makes_no_progress_or_only_comes_and_goes_is_never_ready():
    flapping = (["a"] * (1 + n % 2) for n in range(10 * STEPS))
    clock = StillClock()
    began = clock.now()
    with pytest.raises(NeverReadyError):
        warm_up(clock, lambda: next(flapping), while_it_goes_on=True)
    assert clock.now() - began == LIMIT
