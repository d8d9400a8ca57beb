"""The schedule's event in, one round of advice."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import pytest

from functions import advice
from plimsoll.domain.errors import Temporary
from plimsoll_service import bootstrap
from plimsoll_service.services.recommendations import Advised
from plimsoll_service.services.rounds import Round

DONE = Advised(found=2, changed=1, instructions=(7,))


@dataclass
class Rounds:
    answer: Round
    had_time: list[bool] = field(default_factory=list)

    def run(self, is_time_left: Callable[[], bool]) -> Round:
        self.had_time.append(is_time_left())
        return self.answer


@pytest.fixture
def rounds(monkeypatch: pytest.MonkeyPatch) -> Callable[[Round], Rounds]:
    def of(answer: Round) -> Rounds:
        made = Rounds(answer)
        monkeypatch.setattr(bootstrap, "rounds", lambda: made)
        return made

    return of


def test_every_cluster_is_advised_and_each_is_logged(rounds, context, log):
    made = rounds(Round(advised={"harbor": DONE, "quay": None}, failed={}, left=("pier",)))
    assert advice.handler({}, context) == {"advised": 2, "left": 1}
    lines = {line["message"]: line for line in log()}
    assert lines["cluster advised"]["instructions"] == [7]
    assert lines["clusters left to the next run"]["clusters"] == 1
    assert made.had_time == [context.get_remaining_time_in_millis() > 30_000]


def test_a_cluster_that_failed_is_an_error_of_the_function_after_all_others(rounds, context, log):
    rounds(Round(advised={"harbor": DONE}, failed={"pier": Temporary("away")}, left=()))
    with pytest.raises(advice.SomeFailed):
        advice.handler({}, context)
    assert {"cluster advised", "advice failed"} <= {line["message"] for line in log()}
