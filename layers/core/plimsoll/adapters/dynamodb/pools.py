"""The memory of capacity pools: one item for each event, by region."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from plimsoll.adapters.aws_errors import translated
from plimsoll.adapters.dynamodb.codec import TTL, Item, expiry, strings, text_to_time, time_to_text
from plimsoll.domain.capacity_pools import CapacityPool
from plimsoll.domain.pool_memory import KEPT, PoolEvent, PoolEventKind

if TYPE_CHECKING:
    from datetime import datetime

    from plimsoll.adapters.aws import Aws


class DynamoPools:
    """The table `pools`. An event has the key of what it tells, so that written twice it is one."""

    def __init__(self, aws: Aws, table: str) -> None:
        self._aws = aws
        self._table = table

    def read(self, region: str, now: datetime) -> Sequence[PoolEvent]:
        """Return the events that are not too old to count; DynamoDB deletes an item days late."""
        with translated(f"read the memory of capacity pools in {region}"):
            pages = self._aws.dynamodb.get_paginator("query").paginate(
                TableName=self._table,
                KeyConditionExpression="#region = :region",
                ExpressionAttributeNames={"#region": "region"},
                ExpressionAttributeValues=strings(**{":region": region}),
            )
            found = [_event_of(item) for page in pages for item in page["Items"]]
        return [event for event in found if now - event.at < KEPT]

    def put(self, region: str, events: Iterable[PoolEvent]) -> None:
        """Write events."""
        for event in {event.key: event for event in events}.values():
            with translated(f"write the memory of {event.pool}"):
                self._aws.dynamodb.put_item(TableName=self._table, Item=_item_of(region, event))


def _item_of(region: str, event: PoolEvent) -> Item:
    pool, kind, period = event.key
    item = strings(
        region=region, event="/".join((*pool, kind, str(period))), at=time_to_text(event.at)
    )
    return {**item, TTL: expiry(event.at + KEPT)}


def _event_of(item: Mapping[str, Any]) -> PoolEvent:
    instance_type, zone, capacity, kind, _ = item["event"]["S"].split("/")
    return PoolEvent(
        pool=CapacityPool(instance_type, zone, capacity),
        kind=PoolEventKind(kind),
        at=text_to_time(item["at"]["S"]),
    )
