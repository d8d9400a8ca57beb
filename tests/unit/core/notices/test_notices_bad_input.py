"""Bodies that are wrong: the error names the place, and nothing else ever comes out."""

from __future__ import annotations

import contextlib
import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from plimsoll.domain.errors import BadInput
from plimsoll.domain.notices import parse

EVENTS = Path(__file__).parents[3] / "events"
NOW = datetime(2026, 11, 17, 18, 0, tzinfo=UTC)
BODIES = {path.stem: json.loads(path.read_text()) for path in EVENTS.glob("*.json")}


@pytest.mark.parametrize(
    ("body", "words"),
    [
        ("", "the body: is not JSON"),
        ("{", "the body: is not JSON"),
        (b"\xff\xfe{", "the body: is not JSON"),
        ("[]", "the body: must be a JSON object, not list"),
        ("null", "the body: must be a JSON object, not None"),
        (None, "the body: must be a JSON object, not None"),
        ("{}", "neither an EventBridge event"),
        ('{"Message": "no JSON"}', "Message: is not JSON"),
        ('{"Message": "[]"}', "Message: must be a JSON object"),
        ('{"Message": "{}"}', "neither an EventBridge event"),
        ('{"source": "aws.ec2"}', "detail-type: must be a string, and is missing"),
        ('{"detail-type": "x"}', "source: must be a string, and is missing"),
        ('{"source": 7, "detail-type": "x"}', "source: must be a string, not 7"),
        ('{"Event": {}}', "Event: must be a string"),
    ],
)
def test_what_is_no_event_is_refused_in_words(body, words):
    with pytest.raises(BadInput) as refused:
        parse(body, received=NOW)
    assert words in str(refused.value)


def test_a_body_of_300_kb_is_refused():
    with pytest.raises(BadInput, match="more than an event can have"):
        parse(" " * 300_000, received=NOW)


def test_a_body_nested_without_end_is_refused():
    with pytest.raises(BadInput):
        parse("[" * 200_000, received=NOW)


@pytest.mark.parametrize(
    ("name", "path", "value", "words"),
    [
        ("spot-interruption", "time", None, "time: must be a string, and is missing"),
        ("spot-interruption", "time", "soon", "time: must be a time such as"),
        ("spot-interruption", "time", "2026-11-17T14:14:14", "time: must state its offset"),
        ("spot-interruption", "time", "9999-12-31T23:59:59Z", "time: lies in the year 9999"),
        ("spot-interruption", "account", "1234", "account: must be an account id"),
        ("spot-interruption", "region", "the moon", "region: must be a region"),
        ("spot-interruption", "id", "x" * 300, "id: is longer than 256 characters"),
        ("spot-interruption", "detail", "text", "detail: must be an object"),
        ("spot-interruption", "detail.instance-id", "i-XYZ", "detail.instance-id: must be an inst"),
        ("rebalance-recommendation", "detail.instance-id", "i-1/../2", "detail.instance-id"),
        ("lifecycle-terminate", "detail.EC2InstanceId", None, "detail.EC2InstanceId"),
        ("lifecycle-launch", "detail.AutoScalingGroupName", "", "detail.AutoScalingGroupName"),
        ("lifecycle-sqs-flat", "Time", "yesterday", "Time: must be a time"),
        (
            "capacity-reservation-interruption",
            "detail.instance-termination-time",
            None,
            "detail.instance-termination-time: must be a string, and is missing",
        ),
        ("health-scheduled-change", "detail.startTime", "Tue, 41 Dec", "detail.startTime"),
        ("health-scheduled-change", "detail.affectedEntities", "i-1", "detail.affectedEntities"),
        (
            "health-scheduled-change",
            "detail.affectedEntities",
            [{"entityValue": "i-12345678"}, {"entityValue": 7}],
            "detail.affectedEntities[1].entityValue: must be a string, not 7",
        ),
        ("health-scheduled-change", "detail.affectedEntities", [7], "affectedEntities[0]: must be"),
        (
            "health-scheduled-change",
            "detail.affectedEntities",
            [{"entityValue": "i-12345678"}] * 10_001,
            "has 10001 items, more than 10000",
        ),
        ("zonal-autoshift", "detail.metadata", "text", "detail.metadata: must be an object"),
    ],
)
def test_a_wrong_field_is_named(name, path, value, words):
    body = json.loads(json.dumps(BODIES[name]))
    place: Any = body
    *outer, last = path.split(".")
    for key in outer:
        place = place[key]
    if value is None:
        del place[last]
    else:
        place[last] = value
    with pytest.raises(BadInput) as refused:
        parse(body, received=NOW)
    assert words in str(refused.value)


def test_a_message_never_repeats_a_long_value_whole():
    body = {**BODIES["spot-interruption"], "account": "9" * 200}
    with pytest.raises(BadInput) as refused:
        parse(body, received=NOW)
    assert len(str(refused.value)) < 200


_json = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3)
    ),
    max_leaves=8,
)


def _places(body: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    inner = (
        body.items()
        if isinstance(body, dict)
        else enumerate(body)
        if isinstance(body, list)
        else ()
    )
    return [(*path, key) for key, _ in inner] + [
        place for key, value in inner for place in _places(value, (*path, key))
    ]


@given(data=st.data(), name=st.sampled_from(sorted(BODIES)), value=_json, drop=st.booleans())
def test_an_event_with_any_one_value_changed_is_read_or_refused_never_a_crash(
    data, name, value, drop
):
    body = json.loads(json.dumps(BODIES[name]))
    *outer, last = data.draw(st.sampled_from(_places(body)))
    place = body
    for key in outer:
        place = place[key]
    if drop:
        del place[last]
    else:
        place[last] = value
    with contextlib.suppress(BadInput):
        assert parse(body, received=NOW)


@given(body=_json | st.text() | st.binary())
def test_anything_at_all_is_read_or_refused_never_a_crash(body):
    with contextlib.suppress(BadInput):
        assert parse(body, received=NOW)
