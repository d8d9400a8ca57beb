"""Many scenarios at once on one control plane."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor

from tests.differential.actual import ControlPlane
from tests.differential.scenario import Scenario
from tests.differential.trial import Difference, compared

_BESIDE = 24
"""Scenarios at a time: they mostly wait."""


def begin(
    scenarios: Iterable[Scenario], plane: ControlPlane, pool: ThreadPoolExecutor
) -> Mapping[str, Future[Sequence[Difference]]]:
    """Start all scenarios; those that want to be alone come after all others, one by one."""
    return {s.name: pool.submit(compared, s, plane) for s in scenarios}
