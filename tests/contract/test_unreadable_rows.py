"""A row that cannot be read, in whatever table: it counts as absent, is told of, and is written over."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from dataclasses import replace
from datetime import timedelta
from itertools import product
from random import Random
from typing import Any

import pytest
from moto import mock_aws

from plimsoll.adapters.aws import Aws
from plimsoll.domain.placement import ChosenLayout, Promise
from plimsoll.domain.placement.load_line import NO_FLOOR
from plimsoll_service.adapters.aws import ServiceAws
from plimsoll_service.adapters.members import DynamoMembers
from plimsoll_service.adapters.tenants import MOST_ITEM_BYTES, AwsTenants
from plimsoll_service.services.stored import stored
from plimsoll_service.wire.documents import encode
from plimsoll_service.wire.instructions import Target
from tests.support.enrolled import Key, admitted, invitation

from .conftest import FakeClock
from .test_service_stores import LATER, NOW, service_aws
from .test_stores import DB, REPORT, SCORE, SHOP, T0, TIMES, WEB, entry, in_aws


def spoil(aws: Aws, *keys: str) -> int:
    """Write nonsense into all attributes of all rows but their keys and versions; return how many rows there were."""
    rows = 0
    for table in aws.dynamodb.list_tables()["TableNames"]:
        for item in aws.dynamodb.scan(TableName=table)["Items"]:
            spoilt: Any = {
                name: value if name in keys or "S" not in value else {"S": "?"}
                for name, value in item.items()
            }
            aws.dynamodb.put_item(TableName=table, Item=spoilt)
            rows += 1
    return rows


def test_of_the_interruption_path_no_row_stops_a_read_or_a_write(
    moto_aws: Aws, caplog: pytest.LogCaptureFixture
):
    stores = in_aws(moto_aws)
    stores.registry.add(SHOP)
    stores.index.put([entry("i-1")])
    stores.reports.merge(REPORT)
    stores.times.merge("shop", WEB, TIMES)
    stores.reports.put_score(SCORE)
    rows = spoil(moto_aws, "cluster", "instance", "interruption", "noticed", "workload")
    assert rows == 5
    stores.times.merge("shop", DB, TIMES)
    with caplog.at_level(logging.ERROR):
        assert (stores.registry.get("shop"), stores.registry.list()) == (None, [])
        assert stores.index.find(["i-1"]) == {}
        assert stores.reports.list("shop") == []
        assert stores.times.read("shop", [WEB, DB]) == {DB: TIMES}
        (score,) = stores.reports.scores("shop", [SCORE.month])
        assert score.workloads == {}
        stores.reports.put_score(replace(SCORE, version=score.version))
    assert len(caplog.records) == 6
    assert "counts as absent" in caplog.text
    stores.registry.update(SHOP)
    stores.index.put([entry("i-1")])
    assert stores.reports.merge(REPORT) == REPORT
    stores.times.merge("shop", WEB, TIMES)
    assert stores.registry.get("shop") == SHOP
    assert stores.index.find(["i-1"]) == {"i-1": entry("i-1")}
    assert stores.times.read("shop", [WEB]) == {WEB: TIMES}


def test_a_chosen_layout_that_cannot_be_read_is_absent_and_written_over(moto_aws: Aws):
    stores, chosen = (
        in_aws(moto_aws),
        ChosenLayout(promise=Promise(ready=6), layout=NO_FLOOR, at=T0),
    )
    stores.layouts.write("shop", WEB, None, chosen)
    assert spoil(moto_aws, "cluster", "workload") == 1
    assert stores.layouts.read("shop") == {}
    stores.layouts.write("shop", WEB, None, chosen)
    assert stores.layouts.read("shop") == {WEB: chosen}


def test_an_event_of_a_pool_that_cannot_be_read_hides_no_other(moto_aws: Aws):
    stores = in_aws(moto_aws)
    table = next(
        t for t in moto_aws.dynamodb.list_tables()["TableNames"] if t.startswith("PoolsTable")
    )
    for region, event in product(
        ("eu-west-1", "zonal-shifts/eu-west-1"), ("nonsense", "held/nonsense")
    ):
        moto_aws.dynamodb.put_item(
            TableName=table, Item={"region": {"S": region}, "event": {"S": event}}
        )
    assert stores.pools.read("eu-west-1", T0) == []
    assert stores.pools.shifts("eu-west-1", T0) == []
    assert stores.pools.held("eu-west-1") == []


@pytest.fixture
def aws(monkeypatch: pytest.MonkeyPatch) -> Iterator[ServiceAws]:
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "none")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "none")
    with mock_aws():
        yield service_aws()


class Told(list[dict[str, str]]):
    def __call__(self, **facts: str) -> None:
        self.append(facts)


@pytest.mark.parametrize("size", [10, 2 * MOST_ITEM_BYTES], ids=["in the item", "in the bucket"])
def test_of_the_service_a_document_whose_bytes_are_lost_is_absent_and_written_over(
    aws: ServiceAws, size: int
):
    told = Told()
    data = AwsTenants(
        sessions=lambda _: aws,
        table="DocumentsTable",
        audit_table="AuditTable",
        bucket="snapshots",
        clock=FakeClock(NOW),
        tell=told,
    ).of("acme")
    data.put("c", "key", Random(1).randbytes(size), expires=LATER)
    (item,) = aws.dynamodb.scan(TableName="DocumentsTable")["Items"]
    if "object" in item:
        aws.s3.delete_object(Bucket="snapshots", Key=item["object"]["S"])
    else:
        spoilt: Any = item | {"body": {"B": b"no gzip"}}
        aws.dynamodb.put_item(TableName="DocumentsTable", Item=spoilt)
    found, version = stored(data, "c", "key", Target)
    assert (found, version) == (None, 1)
    assert {each["tenant"] for each in told} == {"acme"}
    target = Target(name="a", uid="b")
    data.put("c", "key", encode(target), version=version, expires=LATER)
    assert stored(data, "c", "key", Target) == (target, 2)


def test_of_the_members_a_broken_row_lets_nobody_in_and_hides_no_other(aws: ServiceAws):
    told = Told()
    members = DynamoMembers(aws=aws, table="MembersTable", tell=told)
    shop = admitted(members, Key(1), invitation("acme", "shop", now=NOW))
    pier = admitted(members, Key(2), invitation("acme", "pier", now=NOW))
    key = {"id": {"S": f"member#{shop.subject}"}}
    aws.dynamodb.update_item(
        TableName="MembersTable", Key=key, UpdateExpression="REMOVE cluster_uid"
    )
    assert members.get(shop.subject) is None
    assert members.agents() == [pier]
    assert [each["table"] for each in told] == ["MembersTable"] * 2
    later = NOW + timedelta(minutes=1)
    members.revoke(shop.subject, later)
    assert admitted(members, Key(3), invitation("acme", "shop", now=later)) in members.agents()
