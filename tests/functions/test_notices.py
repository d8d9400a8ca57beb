"""SQS `notices` in, the messages that must come back out."""

from __future__ import annotations

import time

from functions import notices
from plimsoll.domain.errors import BadInput, MissingRights, Refused, Temporary
from plimsoll.services.retry_policy import NOTICES
from tests.functions.conftest import Crash, batch, embedded_metrics


def failed(answer):
    return [f["itemIdentifier"] for f in answer["batchItemFailures"]]


def test_a_batch_is_handed_over_whole(service, queue, context):
    answer = notices.handler(batch("a", "b"), context)
    assert service.asked == [["a", "b"]]
    assert failed(answer) == []


def test_an_empty_batch_is_no_error(service, queue, context):
    assert failed(notices.handler({"Records": []}, context)) == []


def test_what_may_work_later_comes_back_alone_and_soon(service, queue, context):
    service.answers = {"b": Temporary("the cluster does not answer")}
    assert failed(notices.handler(batch("a", "b"), context)) == ["message-1"]
    assert queue.back == {"receipt-1": 1}
    assert queue.aside == []


def test_the_age_of_a_notice_whose_attempt_failed_is_counted_as_sqs_leaves_it_out_of_its_own(
    service, queue, context, capsys
):
    service.answers = {"a": Temporary("the cluster does not answer")}
    notices.handler(batch("a", "b", attempts=5, sent=time.time() - 40), context)
    [age] = embedded_metrics(capsys.readouterr().out)["NoticeAgeAtRetry"]
    assert 40 <= age < 60


def test_what_is_refused_comes_back_since_an_api_server_that_starts_knows_no_rights_yet(
    service, queue, context
):
    service.answers = {"a": MissingRights("403 nodes is forbidden: User plimsoll cannot get nodes")}
    assert failed(notices.handler(batch("a"), context)) == ["message-0"]
    assert queue.back == {"receipt-0": 1}
    assert queue.aside == []


def test_what_is_still_refused_at_its_last_attempt_is_set_aside(service, queue, context):
    service.answers = {"a": MissingRights("403")}
    assert failed(notices.handler(batch("a", attempts=NOTICES.attempts), context)) == []
    assert queue.aside == [("a", "MissingRights: 403", "message-0", NOTICES.attempts)]


def test_poison_is_set_aside_with_its_reason_and_counted(service, queue, context, capsys, log):
    service.answers = {"poison": BadInput("not JSON: line 1")}
    assert failed(notices.handler(batch("good", "poison"), context)) == []
    assert queue.aside == [("poison", "BadInput: not JSON: line 1", "message-1", 1)]
    assert embedded_metrics(capsys.readouterr().out)["NoticesDeadLettered"] == [1.0]
    aside = [line for line in log() if line["message"] == "notice set aside"]
    assert [line["sqs_message"] for line in aside] == ["message-1"]


def test_what_fails_at_its_last_attempt_is_set_aside_rather_than_moved_without_a_word(
    service, queue, context
):
    service.answers = {"a": Temporary("still no answer")}
    event = batch("a", attempts=NOTICES.attempts)
    assert failed(notices.handler(event, context)) == []
    assert queue.aside == [("a", "Temporary: still no answer", "message-0", NOTICES.attempts)]


def test_a_bug_met_by_one_notice_does_not_take_its_neighbours_along(service, queue, context):
    service.answers = {"strange": Crash("a bug")}
    assert failed(notices.handler(batch("a", "strange", "b"), context)) == ["message-1"]
    assert service.asked[1:] == [["a"], ["strange"], ["b"]]


def test_poison_that_cannot_be_set_aside_comes_back(service, queue, context):
    service.answers = {"poison": BadInput("no")}
    queue.broken = Refused("the queue is gone")
    assert failed(notices.handler(batch("poison"), context)) == ["message-0"]


def test_log_lines_carry_the_request_they_belong_to(service, queue, context, log):
    service.answers = {"a": Temporary("no")}
    notices.handler(batch("a"), context)
    lines = log()
    assert [line["message"] for line in lines] == ["batch received", "notice comes back"]
    assert {line["function_request_id"] for line in lines} == {context.aws_request_id}
