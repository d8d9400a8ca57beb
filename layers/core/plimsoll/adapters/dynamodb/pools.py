"""The memory of capacity pools and zonal shifts: one item for each event, by region."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

from plimsoll.adapters.aws_errors import translated
from plimsoll.adapters.dynamodb.codec import TTL, Item, expiry, strings, text_to_time, time_to_text
from plimsoll.adapters.dynamodb.tables import Warn, logged, readable
from plimsoll.domain.spot import POOL_EVENTS_KEPT, CapacityPool, PoolEvent, PoolEventKind
from plimsoll.domain.zones import LONGEST_SHIFT, ShiftEvent

if TYPE_CHECKING:
    from datetime import datetime

    from plimsoll.adapters.aws import Aws

_SHIFTS: Final = "zonal-shifts/"
"""Before the region of zonal shifts, so that they are read by themselves."""


class DynamoPools:
    """The table `pools`. An event has the key of what it tells, so that written twice it is one."""

    def __init__(self, aws: Aws, table: str, warn: Warn = logged) -> None:
        self._aws = aws
        self._table = table
        self._warn = warn

    def read(self, region: str, now: datetime) -> Sequence[PoolEvent]:
        """Return the events that are not too old to count; DynamoDB deletes an item days late."""
        with translated(f"read the memory of capacity pools in {region}"):
            # An eventually consistent read, at half the price: an event of the last second may be missing.
            found = [self._read(_event_of, item) for item in self._items(region)]
        return [event for event in found if event and now - event.at < POOL_EVENTS_KEPT]

    def put(self, region: str, events: Iterable[PoolEvent]) -> None:
        """Write events."""
        # No condition is needed: the key says all that the event tells, so a second write replaces the first.
        for event in {event.key: event for event in events}.values():
            with translated(f"write the memory of {event.pool}"):
                self._aws.dynamodb.put_item(TableName=self._table, Item=_item_of(region, event))

    def shifts(self, region: str, now: datetime) -> Sequence[ShiftEvent]:
        """Return what was told of zonal shifts that may still stand."""
        with translated(f"read the zonal shifts in {region}"):
            found = [self._read(_shift_of, item) for item in self._items(f"{_SHIFTS}{region}")]
        return [event for event in found if event and now - event.at < LONGEST_SHIFT[event.cause]]

    def _read[T](self, read: Callable[[Mapping[str, Any]], T], item: Mapping[str, Any]) -> T | None:
        return readable(read, item, f"the event {item.get('event')}", self._warn)

    def put_shift(self, region: str, event: ShiftEvent) -> None:
        """Write what was told of a zonal shift; its key is what it tells, so that told again it is the same."""
        with translated(f"write the zonal shift away from {event.zone}"):
            self._aws.dynamodb.put_item(
                TableName=self._table, Item=_item_of_shift(f"{_SHIFTS}{region}", event)
            )

    def _items(self, region: str) -> Iterator[Mapping[str, Any]]:
        pages = self._aws.dynamodb.get_paginator("query").paginate(
            TableName=self._table,
            KeyConditionExpression="#region = :region",
            ExpressionAttributeNames={"#region": "region"},
            ExpressionAttributeValues=strings(**{":region": region}),
        )
        return (item for page in pages for item in page["Items"])


def _item_of_shift(region: str, event: ShiftEvent) -> Item:
    zone, cause, cluster, active, at = event.key
    state = "active" if active else "over"
    item = strings(region=region, event="/".join((zone, cause, cluster, state, time_to_text(at))))
    return {**item, TTL: expiry(at + LONGEST_SHIFT[event.cause])}


def _shift_of(item: Mapping[str, Any]) -> ShiftEvent:
    zone, cause, cluster, state, at = item["event"]["S"].split("/")
    return ShiftEvent(
        zone=zone,
        cause=cause,
        cluster=cluster or None,
        active=state == "active",
        at=text_to_time(at),
    )


def _item_of(region: str, event: PoolEvent) -> Item:
    pool, kind, period = event.key
    item = strings(
        region=region, event="/".join((*pool, kind, str(period))), at=time_to_text(event.at)
    )
    return {**item, TTL: expiry(event.at + POOL_EVENTS_KEPT)}


def _event_of(item: Mapping[str, Any]) -> PoolEvent:
    instance_type, zone, capacity, kind, _ = item["event"]["S"].split("/")
    return PoolEvent(
        pool=CapacityPool(instance_type, zone, capacity),
        kind=PoolEventKind(kind),
        at=text_to_time(item["at"]["S"]),
    )
