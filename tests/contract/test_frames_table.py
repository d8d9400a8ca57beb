"""The table of frames, in moto's DynamoDB."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from random import Random

import pytest

from plimsoll.adapters.aws import Aws
from plimsoll.adapters.dynamodb.frames import MOST_BYTES, DynamoFrames, decoded, encoded
from plimsoll.domain.frames import Frame, NodeFrame, WorkloadFrame
from plimsoll.domain.frames.frame import MOST_NODES, MOST_WORKLOADS
from tests.package.template import requests_for_tables
from tests.unit.core.frames.test_storm_messages import a_frame

TABLE = "FramesTable"


@pytest.fixture
def frames(moto_aws: Aws) -> DynamoFrames:
    moto_aws.dynamodb.create_table(TableName=TABLE, **requests_for_tables()[TABLE])
    return DynamoFrames(moto_aws, TABLE, single_attempt=True)


def later(frame: Frame, seconds: int) -> Frame:
    return replace(frame, number=frame.number + seconds, at=frame.at + timedelta(seconds=seconds))


def test_the_last_frame_of_a_cluster_is_found_again_as_it_was_written(frames: DynamoFrames) -> None:
    first = replace(
        a_frame(of=3, safe=1),
        workloads=(
            WorkloadFrame(
                ref="Deployment shop/web",
                replicas=3,
                floor=2,
                ready=2,
                lowest=2,
                trace=((0.0, 3), (4.5, 2)),
            ),
        ),
    )
    for frame in (first, later(first, 2), replace(later(first, 9), cluster="quay")):
        frames.put(frame)
    assert frames.latest("harbor") == later(first, 2)
    assert frames.latest("unknown") is None
    assert frames.latest("harbor", first.at + timedelta(seconds=1)) == first
    assert frames.latest("harbor", first.at - timedelta(seconds=1)) is None
    assert frames.since("harbor", first.at) == [first, later(first, 2)]
    assert frames.since("harbor", first.at + timedelta(seconds=1)) == [later(first, 2)]


def test_a_frame_that_is_written_twice_is_one(frames: DynamoFrames) -> None:
    frames.put(a_frame())
    frames.put(a_frame())
    assert len(frames.since("harbor", a_frame().at)) == 1


def test_a_storm_begins_once(frames: DynamoFrames) -> None:
    assert frames.begin(a_frame()) is True
    assert frames.begin(later(a_frame(), 2)) is False
    assert frames.begin(replace(a_frame(), storm=a_frame().storm + timedelta(hours=1))) is True
    assert frames.latest("harbor") is None


def test_a_frame_that_cannot_be_read_counts_as_absent(frames: DynamoFrames, moto_aws: Aws) -> None:
    frames.put(a_frame())
    [item] = moto_aws.dynamodb.scan(TableName=TABLE)["Items"]
    moto_aws.dynamodb.put_item(TableName=TABLE, Item={**item, "frame": {"B": b"no frame"}})
    assert frames.latest("harbor") is None


def test_a_frame_that_is_too_large_keeps_its_counts() -> None:
    letters = Random(7)
    names = [
        "".join(letters.choices("abcdefghijklmnopqrstuvwxyz0123456789", k=250)) for _ in range(300)
    ]
    frame = replace(
        a_frame(of=9_000),
        workloads=tuple(
            WorkloadFrame(ref=name, replicas=1, floor=1, ready=1, lowest=1, says=name)
            for name in names[:MOST_WORKLOADS]
        ),
        nodes=tuple(NodeFrame(name=name) for name in names[:MOST_NODES]),
    )
    kept = decoded(encoded(frame))
    assert len(encoded(frame)) <= MOST_BYTES
    assert kept.counts == frame.counts
    assert kept.workloads == frame.workloads[: len(kept.workloads)]
    assert kept.workloads
