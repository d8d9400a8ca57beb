"""Functions as processes: what our plugin of LocalStack does when one of them goes."""

from __future__ import annotations

import json
import os
import signal
import time

import pytest

pytestmark = pytest.mark.localstack


def test_a_function_whose_process_was_killed_gets_another_one(localstack):
    localstack.warm("NoticesFunction", 1)
    before = set(localstack.workers("NoticesFunction"))
    assert before
    for pid in before:
        os.kill(pid, signal.SIGKILL)
    time.sleep(0.5)  # until the killed are no processes any more
    localstack.warm("NoticesFunction", 1)
    after = set(localstack.workers("NoticesFunction"))
    assert after
    assert not after & before


def test_what_a_function_raises_is_told_as_its_error_and_the_next_call_finds_it_well(localstack):
    function, name = localstack.client("lambda"), localstack.outputs["DrainsFunction"]
    raised = function.invoke(FunctionName=name, Payload=b'"no batch"')
    assert raised["FunctionError"]
    assert "errorType" in json.load(raised["Payload"])
    answer = function.invoke(FunctionName=name, Payload=b'{"Records": []}')
    assert "FunctionError" not in answer
    assert json.load(answer["Payload"]) == {"batchItemFailures": []}
