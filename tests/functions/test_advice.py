"""A request for advice in, an answer for that cluster; and the schedule that asks for all."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

import msgspec
import pytest

from functions import advice, advice_schedule
from plimsoll.domain.errors import Temporary
from plimsoll_service import bootstrap
from plimsoll_service.domain.advice.advice_requests import AdviceRequest
from plimsoll_service.services.recommendations import Advised

from .conftest import embedded_metrics

DONE = Advised(found=2, changed=1, configuration="c", instructions=(7,))
NOW = datetime(2026, 11, 22, 12, tzinfo=UTC)


@dataclass
class Fake:
    answers: dict[str, Any] = field(default_factory=dict)
    asked: list[str] = field(default_factory=list)
    silent: frozenset[str] = frozenset()

    def answer(self, request: AdviceRequest) -> Advised | None:
        self.asked.append(request.cluster)
        said = self.answers.get(request.cluster)
        if isinstance(said, Exception):
            raise said
        return said

    def is_silent(self, request: AdviceRequest) -> bool:
        return request.cluster in self.silent

    def run(self) -> int:
        return 3


@pytest.fixture
def fake(monkeypatch: pytest.MonkeyPatch) -> Fake:
    made = Fake()
    monkeypatch.setattr(bootstrap, "advice", lambda: made)
    monkeypatch.setattr(bootstrap, "advice_schedule", lambda: made)
    return made


def event(*clusters: str) -> dict[str, Any]:
    requests = [AdviceRequest(tenant="acme", cluster=c, at=NOW) for c in clusters]
    bodies = [msgspec.json.encode(each).decode() for each in requests]
    return {"Records": [{"messageId": f"m-{n}", "body": body} for n, body in enumerate(bodies)]}


def test_each_cluster_that_was_asked_for_is_advised_and_logged(fake, context, log):
    fake.answers = {"harbor": DONE}
    assert advice.handler(event("harbor", "quay"), context) == {"batchItemFailures": []}
    assert fake.asked == ["harbor", "quay"]
    lines = {line["message"]: line for line in log()}
    assert lines["cluster advised"]["instructions"] == [7]
    assert lines["nothing to advise"]["cluster"] == "quay"


def test_an_agent_that_is_silent_is_counted_and_named(fake, context, log, capsys):
    fake.silent = frozenset({"quay", "pier"})
    fake.answers = {"pier": Temporary("away")}
    advice.handler(event("harbor", "quay", "pier"), context)
    assert sum(embedded_metrics(capsys.readouterr().out)["AgentsSilent"]) == 2
    named = [line["cluster"] for line in log() if line["message"] == "agent silent"]
    assert named == ["quay", "pier"]


@pytest.mark.parametrize("error", [Temporary("away"), RuntimeError("a bug")])
def test_a_cluster_that_fails_comes_back_alone(error, fake, context, log):
    fake.answers = {"harbor": DONE, "pier": error}
    answer = advice.handler(event("pier", "harbor"), context)
    assert answer == {"batchItemFailures": [{"itemIdentifier": "m-0"}]}
    assert {"cluster advised", "advice failed"} <= {line["message"] for line in log()}


def test_what_is_no_request_comes_back_and_ends_in_the_dead_letter_queue(fake, context):
    answer = advice.handler({"Records": [{"messageId": "m-0", "body": "{}"}]}, context)
    assert answer == {"batchItemFailures": [{"itemIdentifier": "m-0"}]}
    assert not fake.asked


def test_the_schedule_says_for_how_many_it_asked(fake, context, log):
    advice_schedule.handler({}, context)
    assert log()[-1]["clusters"] == 3
