"""Many trials at once on one control plane, and what came of them."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait

from tests.differential.known import KNOWN
from tests.differential.scenario import Scenario
from tests.differential.trial import PATIENCE, Difference, compared
from tests.differential.watched import ControlPlane

_BESIDE = 16
"""Scenarios at a time: they mostly wait."""
_STEP_SECONDS = 8.0
"""About as long as both sides take for a step beside its own wait."""
_PLAYS = 3
"""Times that a scenario is played before a difference counts, the last time to its end. The real scheduler and
controllers read between two requests of a step or after them, as it happens; the fake ones always after them."""


class Trials:
    """Starts every scenario at once, the longest first; each answer is waited for when it is asked for."""

    def __init__(self, scenarios: Iterable[Scenario], plane: ControlPlane) -> None:
        chosen = sorted(scenarios, key=_seconds, reverse=True)
        self._pool = ThreadPoolExecutor(_BESIDE, thread_name_prefix="scenario")
        self._last = ThreadPoolExecutor(1, thread_name_prefix="alone")
        self._trials: dict[str, Future[Sequence[Difference]]] = {
            s.name: self._pool.submit(_repeated, s, plane) for s in chosen if not s.alone
        }
        beside = list(self._trials.values())

        def after_all(scenario: Scenario) -> Sequence[Difference]:
            wait(beside)
            return _repeated(scenario, plane)

        for scenario in chosen:
            if scenario.alone:
                self._trials[scenario.name] = self._last.submit(after_all, scenario)

    def differences(self, scenario: Scenario) -> Sequence[Difference]:
        """Wait for a scenario and return where the two sides differ."""
        return self._trials[scenario.name].result()

    def close(self) -> None:
        """Give up what has not begun, and wait for the rest."""
        for pool in (self._last, self._pool):
            pool.shutdown(cancel_futures=True)


def _seconds(scenario: Scenario) -> float:
    waits = PATIENCE if scenario.name in KNOWN else 0
    return waits + sum(_STEP_SECONDS + step.seconds for step in scenario.steps)


def _repeated(scenario: Scenario, plane: ControlPlane) -> Sequence[Difference]:
    """Return the differences of the first play that shows the known ones alone.

    Where none does, return those of the last that showed in all plays which came as far as their step.
    """
    known = KNOWN[scenario.name].differs if scenario.name in KNOWN else frozenset()
    earlier: list[set[tuple[int, str]]] = []
    for _ in range(1, _PLAYS):
        found = compared(scenario, plane, known)
        earlier.append({(each.step, each.what) for each in found})
        if earlier[-1] == known:
            return found
    return [
        each
        for each in compared(scenario, plane)
        if all((each.step, each.what) in play or each.step > max(play)[0] for play in earlier)
    ]


class Score:
    """How many scenarios of each family agreed."""

    def __init__(self) -> None:
        self._agreed: Counter[str] = Counter()
        self._known: Counter[str] = Counter()
        self._played: Counter[str] = Counter()

    def count(self, scenario: Scenario, *, agreed: bool, known: bool) -> None:
        """Take in the outcome of one scenario."""
        self._played[scenario.family] += 1
        self._agreed[scenario.family] += agreed
        self._known[scenario.family] += known

    def told(self) -> list[str]:
        """Return a table of lines, nothing where nothing was played."""
        if not self._played:
            return []
        rows: defaultdict[str, tuple[int, int, int]] = defaultdict(lambda: (0, 0, 0))
        for family, played in sorted(self._played.items()):
            rows[family] = (self._agreed[family], self._known[family], played)
        rows["all"] = (
            self._agreed.total(),
            self._known.total(),
            self._played.total(),
        )
        return [
            f"{family:<14} {agreed:>4} of {played:>4} agree"
            + (f", {known} differ as known" if known else "")
            for family, (agreed, known, played) in rows.items()
        ]
