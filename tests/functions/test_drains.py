"""SQS `wake-ups` in, one reconcile of a cluster's drain."""

from __future__ import annotations

import json

import pytest

from functions import drains
from plimsoll.domain.errors import Temporary
from plimsoll.services.retry_policy import HURRIED_SECONDS, RECONCILE_SECONDS, WAKE_UPS
from tests.functions.conftest import batch

WAKE_UP = json.dumps({"cluster": "harbor"})


def failed(answer):
    return [f["itemIdentifier"] for f in answer["batchItemFailures"]]


def test_a_wake_up_reconciles_its_cluster_under_the_name_of_the_invocation(service, context):
    context.milliseconds_left = 180_000
    assert failed(drains.handler(batch(WAKE_UP), context)) == []
    assert service.asked == [("harbor", context.aws_request_id, RECONCILE_SECONDS, HURRIED_SECONDS)]


def test_a_reconcile_never_outlasts_its_invocation(service, context):
    context.milliseconds_left = 10_000
    drains.handler(batch(WAKE_UP), context)
    [(_, _, seconds, hurried)] = service.asked
    assert seconds == hurried == 10 - drains.END_SECONDS


TRACEPARENT = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"


@pytest.mark.parametrize(
    ("said", "taken"),
    [
        (TRACEPARENT, TRACEPARENT),
        (TRACEPARENT.upper(), None),
        (TRACEPARENT.replace("00", "01", 1), None),  # another version
        (f"00-{'0' * 32}-00f067aa0ba902b7-01", None),
        (f"{TRACEPARENT}-{'x' * 100_000}", None),
        ("1-5759e988-bd862e3fe1be46a994272793", None),  # X-Ray's
        ({"nested": []}, None),
        (None, None),
    ],
)
def test_a_wake_up_continues_a_trace_of_the_w3c_and_any_other_header_is_ignored(
    service, context, said, taken
):
    attributes = {"traceparent": {"dataType": "String", "stringValue": said}}
    assert failed(drains.handler(batch(WAKE_UP, attributes=attributes), context)) == []
    assert service.traceparents == [taken]


def test_a_wake_up_that_fails_is_left_to_its_queue_with_its_reason_logged(service, context, log):
    service.answers = {"harbor": Temporary("the cluster does not answer")}
    assert failed(drains.handler(batch(WAKE_UP), context)) == ["message-0"]
    [line] = log()
    assert line["message"] == "reconcile failed"
    assert "the cluster does not answer" in line["exception"]
    assert line["comes_back_in_seconds"] == WAKE_UPS.visibility_seconds


def test_a_message_that_is_no_wake_up_fails_alone(service, context):
    answer = drains.handler(batch("no JSON", "{}", "[]", WAKE_UP), context)
    assert failed(answer) == ["message-0", "message-1", "message-2"]
    assert len(service.asked) == 1
