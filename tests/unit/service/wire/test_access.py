"""What agents sign: every part of a request, and each kind of message by itself."""

from __future__ import annotations

from typing import Any

import pytest

from plimsoll_service.wire.access import (
    Enrolment,
    assertion_message,
    enrolment_message,
    request_message,
)
from plimsoll_service.wire.documents import Malformed, decode, encode

REQUEST: dict[str, Any] = {
    "method": "POST",
    "path": "/v1/clusters/c1/snapshots",
    "query": "",
    "timestamp": 1000,
    "body": b"body",
}


@pytest.mark.parametrize(
    "change",
    [
        {"method": "GET"},
        {"path": "/v1/clusters/c2/snapshots"},
        {"query": "full=1"},
        {"timestamp": 1001},
        {"body": b"other"},
    ],
)
def test_a_signature_covers_every_part_of_a_request(change):
    assert request_message(**REQUEST | change) != request_message(**REQUEST)


def test_no_message_of_one_kind_passes_for_one_of_another():
    messages = [
        request_message(**REQUEST),
        assertion_message(b"{}"),
        enrolment_message("token", bytes(32), "uid"),
    ]
    assert len({message.partition(b"\n")[0] for message in messages}) == 3


def test_a_key_has_32_bytes_and_travels_as_base64():
    enrolment = Enrolment(
        join_token="t", public_key=bytes(32), cluster_uid="u", signature=bytes(64)
    )
    assert decode(encode(enrolment), Enrolment) == enrolment
    with pytest.raises(Malformed, match="public_key"):
        decode(encode(enrolment).replace(b"AAAA", b"", 1), Enrolment)
