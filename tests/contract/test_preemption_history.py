"""The history of preemptions, in memory and in moto's DynamoDB."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from plimsoll.adapters.aws import Aws
from plimsoll_batch.adapters.preemptions import KEEP, DynamoPreemptions
from plimsoll_batch.domain.jobs import PreemptionRecord
from plimsoll_batch.services.ports import PreemptionHistory
from tests.package.template import requests_for_tables
from tests.support.preemptions import MemoryPreemptions

TABLE = "PreemptionsTable"
FIRST = PreemptionRecord(
    gang="lab/train",
    queue="lab",
    at=datetime(2026, 11, 17, 12, 0, 0, 5, tzinfo=UTC),
    by="lab/urgent",
    why="it has a higher priority",
)
NEXT = replace(FIRST, gang="tests/soak", queue="tests", by="")
LAST = replace(FIRST, at=FIRST.at + timedelta(minutes=1))


@pytest.fixture
def table(moto_aws: Aws) -> DynamoPreemptions:
    moto_aws.dynamodb.create_table(TableName=TABLE, **requests_for_tables("batch.yaml")[TABLE])
    return DynamoPreemptions(moto_aws, TABLE)


@pytest.fixture(params=["memory", "moto"])
def history(request: pytest.FixtureRequest) -> PreemptionHistory:
    return MemoryPreemptions() if request.param == "memory" else request.getfixturevalue("table")


def test_the_newest_come_first_and_what_was_added_twice_is_one(history: PreemptionHistory) -> None:
    for record in (LAST, FIRST, NEXT, FIRST):
        history.add("harbor", record)
    history.add("quay", FIRST)
    assert history.list("harbor", limit=9) == [LAST, NEXT, FIRST]
    assert history.list("harbor", limit=1) == [LAST]
    assert history.list("harbor", limit=9, queue="tests") == [NEXT]
    assert history.list("pier", limit=9) == []


def test_a_row_goes_after_thirty_days_and_one_that_cannot_be_read_counts_as_absent(
    table: DynamoPreemptions, moto_aws: Aws
) -> None:
    table.add("harbor", FIRST)
    [item] = moto_aws.dynamodb.scan(TableName=TABLE)["Items"]
    assert item["expires"] == {"N": str(int((FIRST.at + KEEP).timestamp()))}
    moto_aws.dynamodb.put_item(TableName=TABLE, Item={**item, "at": {"S": "late"}})
    assert table.list("harbor", limit=9) == [FIRST]
