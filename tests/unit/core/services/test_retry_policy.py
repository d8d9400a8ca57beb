"""What becomes of a message whose handling failed."""

from __future__ import annotations

import pytest

from plimsoll.domain.errors import (
    BadInput,
    Blocked,
    Conflict,
    MissingRights,
    NotFound,
    Refused,
    Temporary,
    Throttled,
)
from plimsoll.domain.interruptions import NewerRecord
from plimsoll.services.retry_policy import NOTICES, WAKE_UPS


@pytest.mark.parametrize(("attempts", "seconds"), [(1, 1), (2, 2), (5, 8), (6, 15), (13, 15)])
def test_each_attempt_at_a_notice_waits_a_little_longer(attempts: int, seconds: int) -> None:
    assert NOTICES.pause_seconds(Temporary("no"), attempts=attempts) == seconds


@pytest.mark.parametrize("error", [Temporary("no"), Throttled("slow down", retry_after=1.0)])
def test_all_attempts_at_a_notice_together_outlast_it(error: Exception) -> None:
    pauses = [
        NOTICES.pause_seconds(error, attempts=attempt) for attempt in range(1, NOTICES.attempts)
    ]
    assert sum(pause or 0 for pause in pauses) > 120


@pytest.mark.parametrize(("asked", "granted"), [(4.0, 4), (0.2, 1), (600.0, 30)])
def test_patience_asked_for_is_granted_within_reason(asked: float, granted: int) -> None:
    error = Throttled("slow down", retry_after=asked)
    assert NOTICES.pause_seconds(error, attempts=1) == granted


@pytest.mark.parametrize(
    "kind",
    [
        *(Temporary, Conflict, Blocked, Throttled),
        *(Refused, MissingRights),
        KeyError,
    ],
)
def test_a_notice_comes_back_until_its_last_attempt(kind: type[Exception]) -> None:
    error = kind("no")
    assert NOTICES.pause_seconds(error, attempts=NOTICES.attempts - 1) is not None
    assert NOTICES.pause_seconds(error, attempts=NOTICES.attempts) is None


@pytest.mark.parametrize("kind", [BadInput, NotFound, NewerRecord])
def test_a_notice_that_no_attempt_can_cure_is_set_aside_at_once(kind: type[Exception]) -> None:
    assert NOTICES.pause_seconds(kind("no"), attempts=1) is None


@pytest.mark.parametrize("kind", [Temporary, BadInput, KeyError])
def test_a_wake_up_comes_back_twice_whatever_it_failed_with(kind: type[Exception]) -> None:
    pauses = [WAKE_UPS.pause_seconds(kind("no"), attempts=attempt) for attempt in (1, 2, 3)]
    assert pauses == [WAKE_UPS.visibility_seconds, WAKE_UPS.visibility_seconds, None]
