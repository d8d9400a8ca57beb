"""A wake-up in, the queues of one cluster planned."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import pytest

from functions import batch, batch_events, batch_schedule
from plimsoll.domain.errors import Temporary
from plimsoll_batch import bootstrap
from tests.functions import conftest


@dataclass
class FakeQueues:
    """Fails as it was told to."""

    answers: dict[str, Exception] = field(default_factory=dict)
    asked: list[Any] = field(default_factory=list)

    def run(self, name: str, *, holder: str, seconds: float) -> int:
        self.asked.append((name, holder, seconds))
        if name in self.answers:
            raise self.answers[name]
        return 1

    def wake(self) -> None:
        self.asked.append("wake")
        if "wake" in self.answers:
            raise self.answers["wake"]


@pytest.fixture
def queues(monkeypatch):
    found = FakeQueues()
    monkeypatch.setattr(bootstrap, "queues", lambda: found)
    return found


def test_a_wake_up_plans_its_cluster_within_the_time_of_the_function(queues, context):
    answer = batch.handler(conftest.batch('{"cluster": "harbor"}'), context)
    assert answer == {"batchItemFailures": []}
    assert queues.asked == [("harbor", context.aws_request_id, 16.0)]


@pytest.mark.parametrize("broken", ['{"cluster": "harbor"}', "no JSON"])
def test_a_cluster_that_fails_is_named_and_is_no_error_that_slows_the_queue(
    queues, context, log, broken
):
    queues.answers = {"harbor": Temporary("away")}
    event = conftest.batch(broken, '{"cluster": "pier"}')
    assert batch.handler(event, context) == {"batchItemFailures": [{"itemIdentifier": "message-0"}]}
    assert queues.asked[-1][0] == "pier"
    assert "queues not planned" in [line["message"] for line in log()]


def test_the_schedule_wakes_all_clusters(queues, context):
    batch_schedule.handler({}, context)
    assert queues.asked == ["wake"]


def test_a_schedule_that_fails_is_an_error_of_the_function(queues, context):
    queues.answers = {"wake": Temporary("the registry is away")}
    with pytest.raises(Temporary):
        batch_schedule.handler({}, context)


class FakeWakeUps:
    def __init__(self, *answers: Temporary | None) -> None:
        self.answers = answers
        self.bodies: list[str] = []

    def receive(self, bodies: list[str]) -> tuple[Temporary | None, ...]:
        self.bodies += bodies
        return self.answers


def test_events_that_failed_come_back_and_the_others_do_not(monkeypatch, context, log):
    wake_ups = FakeWakeUps(None, Temporary("SQS is away"))
    monkeypatch.setattr(bootstrap, "wake_ups", lambda: wake_ups)
    answer = batch_events.handler(conftest.batch("first", "second"), context)
    assert answer == {"batchItemFailures": [{"itemIdentifier": "message-1"}]}
    assert wake_ups.bodies == ["first", "second"]
    assert "event comes back" in [line["message"] for line in log()]
