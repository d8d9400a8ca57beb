"""A scenario played on both sides, and where they differ."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

from plimsoll_simulation.fake_cluster.settings import Choice
from tests.differential.actual import ActualSide
from tests.differential.fake_cluster import FakeSide
from tests.differential.pictures import Painter, Snapshot
from tests.differential.placements import IDLE, LAWS
from tests.differential.scenario import Scenario
from tests.differential.sides import send
from tests.differential.watched import ControlPlane

_CHOICES: Final[tuple[tuple[Choice, int], ...]] = (
    *(("packed", seed) for seed in range(8)),
    *(("any", seed) for seed in range(8, 12)),
    ("best", 12),
)
"""Ways to choose among the nodes that fit. What they agree on hangs on no free choice."""
PATIENCE = 30.0
"""Seconds that the real side is given to come to what the fake one came to: a scheduler that
backs off, a controller that reads an old cache."""
_LONG_PATIENCE = 120.0
"""The same while something is under way, or pods wait that have a place: the scheduler takes the pods
of all scenarios in turn, those of high priority first."""


class _Absent:
    def __repr__(self) -> str:
        return "nothing"


ABSENT: Final = _Absent()


@dataclass(frozen=True, slots=True, kw_only=True)
class Difference:
    """One thing that is not the same on both sides after a step."""

    step: int
    what: str
    fake: Any
    actual: Any

    def __str__(self) -> str:
        fake, actual = self.fake, self.actual
        if isinstance(fake, dict) and isinstance(actual, dict):
            same = {k for k in fake if fake[k] == actual.get(k, ABSENT)}
            fake = {k: v for k, v in fake.items() if k not in same}
            actual = {k: v for k, v in actual.items() if k not in same}
        return f"step {self.step}, {self.what}: fake {fake}, real {actual}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Expectation:
    """What the fake cluster shows after each step whatever its scheduler chose."""

    steps: tuple[Snapshot, ...]
    chance: tuple[frozenset[str], ...]
    """What came out differently for different choices, and is not compared."""


def expected(scenario: Scenario) -> Expectation:
    """Play a scenario on fake clusters that choose differently and keep what they agree on."""
    runs = [_fake(scenario, choice, seed) for choice, seed in _CHOICES]
    steps, chance = [], []
    for pictures in zip(*runs, strict=True):
        names = {name for snapshot in pictures for name in snapshot}
        held = {}
        for name in names:
            values = [snapshot.get(name, ABSENT) for snapshot in pictures]
            if name in LAWS:  # they hold whatever was chosen: one that broke them is shown
                held[name] = next(filter(None, values), values[0])
            elif all(value == values[0] for value in values):
                held[name] = values[0]
        steps.append(held)
        chance.append(frozenset(names - set(held)))
    return Expectation(steps=tuple(steps), chance=tuple(chance))


def _fake(scenario: Scenario, choice: Choice, seed: int) -> Sequence[Snapshot]:
    side = FakeSide(scenario.name, choice, seed)
    painter = Painter(scenario, side)
    pictures = []
    for step in scenario.steps:
        answers = send(side, step.requests)
        side.settle(step.seconds)
        pictures.append(painter.paint(answers, side.changes()))
        painter.keep()
    return pictures


def compared(
    scenario: Scenario, plane: ControlPlane, known: frozenset[tuple[int, str]] | None = None
) -> Sequence[Difference]:
    """Play a scenario on both sides and return where they differ.

    Args:
        scenario: what is played.
        plane: the real side.
        known: steps and names; the play ends with the step at which anything else differs. None: it is played to
            its end.
    """
    wanted = expected(scenario)
    side = ActualSide(plane, scenario.name)
    painter = Painter(scenario, side)
    found: list[Difference] = []
    try:
        for number, step in enumerate(scenario.steps):
            answers = send(side, step.requests)
            side.settle(step.seconds)
            changes = list(side.changes())
            begun = time.monotonic()
            while True:
                snapshot = painter.paint(answers, changes)
                differ = differences(number, wanted, snapshot)
                busy = snapshot.get(IDLE) or side.moving()
                patience = _LONG_PATIENCE if busy else PATIENCE
                if not differ or time.monotonic() - begun > patience:
                    break
                time.sleep(0.5)
                changes += side.changes()
            painter.keep()
            found += differ
            if known is not None and not {(each.step, each.what) for each in differ} <= known:
                break
    finally:
        side.forget()
    return found


def differences(step: int, expected: Expectation, found: Snapshot) -> list[Difference]:
    """Return where a picture is not what was expected after a step."""
    wanted = expected.steps[step]
    names = (set(wanted) | set(found)) - expected.chance[step]
    return [
        Difference(
            step=step, what=name, fake=wanted.get(name, ABSENT), actual=found.get(name, ABSENT)
        )
        for name in sorted(names)
        if wanted.get(name, ABSENT) != found.get(name, ABSENT)
    ]
