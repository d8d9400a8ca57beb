"""What the error codes of AWS mean, and what becomes of a notice that met one."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import botocore
import pytest
from botocore.exceptions import ClientError
from botocore.retries.standard import ThrottledRetryableChecker, TransientRetryableChecker

from plimsoll.adapters.aws_errors import translate
from plimsoll.domain.errors import (
    BadInput,
    Conflict,
    MissingRights,
    NotFound,
    PlimsollError,
    Refused,
    Temporary,
    Throttled,
)
from plimsoll.services.retry_policy import NOTICES


def meaning(code: str, status: int = 400) -> PlimsollError:
    said = {"Error": {"Code": code, "Message": "…"}, "ResponseMetadata": {"HTTPStatusCode": status}}
    return translate(ClientError(said, "GetItem"), "read the node index")  # type: ignore[arg-type] # the parts that are read


def codes_worth_another_attempt(rules: object) -> Iterator[str]:
    """Yield the codes in botocore's rules for attempts."""
    if isinstance(rules, Mapping):
        if code := rules.get("service_error_code"):
            yield code
        for part in rules.values():
            yield from codes_worth_another_attempt(part)


def retried_by_botocore() -> list[str]:
    path = Path(botocore.__file__).parent / "data" / "_retry.json"
    rules: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    standard: list[str] = vars(TransientRetryableChecker)["_TRANSIENT_ERROR_CODES"]
    return sorted({*codes_worth_another_attempt(rules), *standard})


@pytest.mark.parametrize("code", retried_by_botocore())
def test_what_botocore_tries_again_is_temporary(code: str):
    assert isinstance(meaning(code), Temporary)


@pytest.mark.parametrize(
    "code",
    [
        *vars(ThrottledRetryableChecker)["_THROTTLED_ERROR_CODES"],
        "KMSThrottling",
        "KmsThrottled",
        "KMS.ThrottlingException",
        "Throttled",
    ],
)
def test_throttling_is_throttling_whichever_service_says_it(code: str):
    assert type(meaning(code)) is Throttled


def test_an_answer_of_status_429_is_throttling_whatever_its_code():
    assert type(meaning("Busy", status=429)) is Throttled


def test_a_conditional_write_that_met_another_is_tried_again_and_one_that_came_late_is_not():
    assert type(meaning("ConditionalRequestConflict", status=409)) is Temporary
    assert type(meaning("PreconditionFailed", status=412)) is Conflict


@pytest.mark.parametrize(
    "code",
    [
        "InvalidSignatureException",
        "SignatureDoesNotMatch",
        "RequestTimeTooSkewed",
        "RequestInTheFuture",
        "RequestExpired",
        "ExpiredTokenException",
    ],
)
def test_a_notice_whose_request_was_signed_before_lambda_froze_comes_back(code: str):
    error = meaning(code, status=403)
    assert type(error) is Temporary
    assert NOTICES.pause_seconds(error, attempts=1) is not None


@pytest.mark.parametrize(
    ("code", "kind"),
    [
        ("InvalidParameterValue", BadInput),
        ("InvalidParameterException", BadInput),
        ("InvalidInstanceID.Malformed", BadInput),
        ("ValidationException", BadInput),
        ("InvalidInstanceID.NotFound", NotFound),
        ("InvalidClientTokenId", MissingRights),
        ("InvalidStateException", Refused),
        ("InvalidRequestException", Refused),
        ("KmsInvalidState", Refused),
    ],
)
def test_only_what_was_sent_is_bad_input(code: str, kind: type[PlimsollError]):
    assert type(meaning(code)) is kind


def test_only_bad_input_ends_the_attempts_at_a_notice_at_once():
    assert NOTICES.pause_seconds(meaning("InvalidStateException"), attempts=1) is not None
    assert NOTICES.pause_seconds(meaning("ValidationException"), attempts=1) is None
