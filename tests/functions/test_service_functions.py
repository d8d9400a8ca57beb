"""The handlers of the optimisation service: an event of AWS in, an answer out."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

import msgspec
import pytest

from functions import api, api_requests, authorizer, metrics
from plimsoll.domain.errors import (
    BadInput,
    Discardable,
    MissingRights,
    NotFound,
    Temporary,
    Throttled,
)
from plimsoll_service import bootstrap
from plimsoll_service.domain.errors import Forbidden, TooLarge, Unproven
from plimsoll_service.domain.snapshots.arrivals import Arrival
from plimsoll_service.wire.documents import Malformed
from plimsoll_simulation.fake_aws.service_stores import MemoryMembers
from tests.support.enrolled import Key, agent_of

from .conftest import Context, embedded_metrics

NOW = datetime(2026, 11, 22, 12, tzinfo=UTC)
AGENT = agent_of(Key(), now=NOW)


@dataclass
class Fakes:
    """What stands behind `bootstrap`: it does what the test says for each sequence."""

    happens: dict[int, Exception] = field(default_factory=dict)
    worked: list[int] = field(default_factory=list)
    back: list[tuple[str, int]] = field(default_factory=list)
    aside: list[tuple[str, str]] = field(default_factory=list)
    deaf: bool = False

    def work(self, arrival: Arrival) -> bool:
        if arrival.sequence in self.happens:
            raise self.happens[arrival.sequence]
        self.worked.append(arrival.sequence)
        return True

    def come_back(self, receipt: str, *, seconds: int) -> None:
        self._listen()
        self.back.append((receipt, seconds))

    def set_aside(self, body: str, *, reason: str, message_id: str, attempts: int) -> None:
        self._listen()
        self.aside.append((message_id, reason))

    def _listen(self) -> None:
        if self.deaf:
            raise Temporary("SQS does not answer")


@pytest.fixture
def fakes(monkeypatch: pytest.MonkeyPatch) -> Fakes:
    found = Fakes()
    monkeypatch.setattr(bootstrap, "ingest", lambda: found)
    monkeypatch.setattr(bootstrap, "arrivals", lambda: found)
    return found


def record(sequence: int, *, attempts: int = 1, body: str | None = None) -> dict[str, Any]:
    told = Arrival(
        tenant="acme",
        cluster="a-1",
        epoch="e",
        sequence=sequence,
        base=0,
        received_at=NOW,
        digest="",
    )
    return {
        "messageId": f"m-{sequence}",
        "receiptHandle": f"r-{sequence}",
        "body": body if body is not None else msgspec.json.encode(told).decode(),
        "attributes": {"ApproximateReceiveCount": str(attempts)},
    }


def worked(*records: dict[str, Any], left: int = 30_000) -> list[str]:
    """The messages that come back of a batch."""
    answer = metrics.handler({"Records": list(records)}, Context(milliseconds_left=left))
    return [failure["itemIdentifier"] for failure in answer["batchItemFailures"]]


def test_one_that_fails_takes_no_neighbour_along(fakes: Fakes):
    fakes.happens = {2: Temporary("later"), 3: RuntimeError("a fault"), 4: BadInput("never")}
    assert worked(*(record(n) for n in range(1, 6))) == ["m-2", "m-3"]
    assert fakes.worked == [1, 5]
    assert fakes.aside == [("m-4", "BadInput: never")]


def test_what_its_agent_made_wrong_is_counted_and_rings_no_alarm(fakes: Fakes, capsys):
    fakes.happens = {1: Discardable("its base 1 never came")}
    assert worked(record(1), record(2)) == []
    assert (fakes.aside, fakes.back) == ([], [])
    assert embedded_metrics(capsys.readouterr().out)["SnapshotsRefused"] == [1.0]


def test_what_is_no_arrival_is_set_aside_with_its_reason(fakes: Fakes):
    assert worked(record(1, body="[1, 2]")) == []
    [(message, reason)] = fakes.aside
    assert (message, reason[:8]) == ("m-1", "BadInput")


def test_each_attempt_waits_longer_than_the_one_before(fakes: Fakes):
    fakes.happens = {1: Temporary("later")}
    for attempts in range(1, 10):
        worked(record(1, attempts=attempts))
    pauses = [seconds for _, seconds in fakes.back]
    assert pauses == sorted(pauses)
    assert (pauses[0], pauses[-1]) == (2, 300)


def test_where_the_queue_does_not_listen_a_message_comes_back_by_itself(fakes: Fakes):
    fakes.happens, fakes.deaf = {1: Temporary("later"), 2: NotFound("never")}, True
    assert worked(record(1), record(2)) == ["m-1", "m-2"]


def test_what_there_is_no_time_for_comes_back_untouched(fakes: Fakes):
    assert worked(record(1), record(2), left=metrics.RESERVE_MILLISECONDS - 1) == ["m-1", "m-2"]
    assert fakes.worked == []


# --- The API ---------------------------------------------------------------------------------------


def asked(path: str, method: str = "GET", **more: Any) -> dict[str, Any]:
    return {
        "requestContext": {"resourcePath": path, "httpMethod": method, "path": f"/live{path}"}
        | {"identity": {"sourceIp": "192.0.2.1"}}
        | more,
        "headers": {},
        "multiValueHeaders": {},
        "multiValueQueryStringParameters": None,
        "pathParameters": {"cluster": "a-1"},
        "stageVariables": None,
        "body": None,
        "isBase64Encoded": False,
    }


@pytest.mark.parametrize(
    ("error", "status"),
    [
        (Unproven("x"), 401),
        (Forbidden("x"), 403),
        (TooLarge("x"), 413),
        (Malformed("x"), 400),
        (NotFound("x"), 404),
        (Throttled("x", retry_after=40.0), 429),
        (Temporary("x"), 503),
        (MissingRights("of ours"), 500),
        (BadInput("of ours"), 500),
        (RuntimeError("secret"), 500),
    ],
    ids=lambda e: type(e).__name__ if isinstance(e, Exception) else "",
)
def test_each_error_is_a_problem_with_its_status_and_a_fault_says_nothing(
    error: Exception, status: int, monkeypatch: pytest.MonkeyPatch
):
    def fails() -> Any:
        raise error

    monkeypatch.setattr(bootstrap, "reads", fails)
    context = {"authorizer": authorizer.policy(AGENT, "a/live/GET/x")["context"]}
    monkeypatch.setattr(api_requests, "refuse_unsigned", lambda *_: None)
    answer = api.handler(asked("/v1/clusters", **context), Context())
    assert answer["statusCode"] == status
    assert answer["headers"]["Content-Type"] == "application/problem+json"
    problem = json.loads(answer["body"])
    assert problem["status"] == status
    if status >= 500:
        assert str(error) not in problem["detail"]
    if status == 429:
        assert answer["headers"]["Retry-After"] == "40"


def test_an_agent_that_does_not_sign_gets_nothing():
    context = {"authorizer": authorizer.policy(AGENT, "a/live/GET/x")["context"]}
    answer = api.handler(asked("/v1/clusters/{cluster}/instructions", **context), Context())
    assert answer["statusCode"] == 401


# --- The authorizer --------------------------------------------------------------------------------


def test_what_the_api_is_told_of_an_agent_is_what_the_authorizer_found():
    said = authorizer.policy(AGENT, "arn:aws:execute-api:r:a:api/live/GET/v1/clusters")
    assert authorizer.known(said["context"]) == AGENT
    assert all(isinstance(value, str) for value in said["context"].values())


@pytest.mark.parametrize(
    "headers", [None, {}, {"Authorization": "x"}, {"AUTHORIZATION": "Bearer "}]
)
def test_without_a_token_the_answer_is_the_word_that_makes_401(
    headers: dict[str, str] | None, monkeypatch: pytest.MonkeyPatch
):
    class Nobody:
        def authorize(self, token: str, now: datetime) -> None:
            assert token in {"", "x"}

    monkeypatch.setattr(bootstrap, "access", Nobody)
    with pytest.raises(authorizer.Unauthorized, match=r"^Unauthorized$"):
        authorizer.handler({"headers": headers, "methodArn": "a/live/GET/x"}, Context())


# --- What rings the alarm on faults ----------------------------------------------------------------


def failing(error: Exception) -> Callable[[], Any]:
    """Return a part of `bootstrap` that cannot be had."""

    def fails() -> Any:
        raise error

    return fails


@pytest.mark.parametrize(
    ("error", "counted"),
    [
        (Temporary("DynamoDB does not answer"), {"ServiceFaults": [1]}),
        (RuntimeError("a bug"), {"ServiceFaults": [1]}),
        (Throttled("x"), {}),
        (NotFound("x"), {}),
        (Unproven("x"), {}),
        (Malformed("x"), {}),
    ],
    ids=lambda e: type(e).__name__ if isinstance(e, Exception) else "",
)
def test_a_fault_that_a_holder_of_a_token_meets_is_counted_and_none_of_their_own(
    error: Exception, counted: dict[str, Any], monkeypatch: pytest.MonkeyPatch, capsys: Any
):
    monkeypatch.setattr(bootstrap, "reads", failing(error))
    monkeypatch.setattr(api_requests, "refuse_unsigned", lambda *_: None)
    context = {"authorizer": authorizer.policy(AGENT, "a/live/GET/x")["context"]}
    api.handler(asked("/v1/clusters", **context), Context())
    assert embedded_metrics(capsys.readouterr().out) == counted


@pytest.mark.parametrize(
    ("error", "status"), [(Temporary("DynamoDB does not answer"), 503), (RuntimeError("bug"), 500)]
)
def test_a_caller_without_a_token_counts_no_fault_even_where_there_is_one(
    error: Exception, status: int, monkeypatch: pytest.MonkeyPatch, capsys: Any
):
    monkeypatch.setattr(bootstrap, "members", MemoryMembers)
    monkeypatch.setattr(bootstrap, "access", failing(error))
    assert api.handler(asked("/v1/token", "POST"), Context())["statusCode"] == status
    assert not embedded_metrics(capsys.readouterr().out)


def test_a_token_that_cannot_be_looked_up_is_a_fault_and_one_that_is_refused_is_none(
    monkeypatch: pytest.MonkeyPatch, capsys: Any
):
    event = {"headers": {"Authorization": "Bearer t"}, "methodArn": "a/live/GET/x"}
    monkeypatch.setattr(bootstrap, "access", failing(Temporary("DynamoDB does not answer")))
    with pytest.raises(Temporary):
        authorizer.handler(event, Context())
    assert embedded_metrics(capsys.readouterr().out)["ServiceFaults"] == [1]
    with pytest.raises(authorizer.Unauthorized):
        authorizer.handler({**event, "headers": {}}, Context())
    assert not embedded_metrics(capsys.readouterr().out)
