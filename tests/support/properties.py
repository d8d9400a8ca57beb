"""How many examples Hypothesis draws of a property that plays a whole storm, day or cluster."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

import pytest
from hypothesis import HealthCheck, settings

IN_TEST_LONG: Final = settings.get_current_profile_name() == "long"


def drawn[**P](
    few: int, *, many: int, suppress_health_check: Sequence[HealthCheck] = ()
) -> Callable[[Callable[P, None]], Callable[P, None]]:
    """Draw few examples in `make test`, the same every time, and many others in `make test-long`."""
    how = settings(
        max_examples=many if IN_TEST_LONG else few,
        derandomize=not IN_TEST_LONG,
        deadline=None,
        suppress_health_check=suppress_health_check,
    )
    return lambda test: pytest.mark.drawn(how(test))
