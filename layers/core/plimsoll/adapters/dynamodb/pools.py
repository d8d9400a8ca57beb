"""The memory of capacity pools and zonal shifts, by region: one item for each event, and for each pool that is held."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

from plimsoll.adapters.aws_errors import translated
from plimsoll.adapters.dynamodb.codec import TTL, Item, expiry, strings, text_to_time, time_to_text
from plimsoll.adapters.dynamodb.tables import Warn, logged, readable
from plimsoll.domain.spot import (
    POOL_EVENTS_KEPT,
    CapacityPool,
    HeldPool,
    PoolEvent,
    PoolEventKind,
    PoolMemory,
)
from plimsoll.domain.zones import LONGEST_SHIFT, ShiftEvent

if TYPE_CHECKING:
    from datetime import datetime

    from plimsoll.adapters.aws import Aws

_SHIFTS: Final = "zonal-shifts/"
"""Before the region of zonal shifts, so that they are read by themselves."""
_HELD: Final = "held/"
"""Before a pool that is held: among the events of its region, so that a reconcile reads both at once."""


class DynamoPools:
    """The table `pools`. An event has the key of what it tells, so that written twice it is one."""

    def __init__(self, aws: Aws, table: str, warn: Warn = logged) -> None:
        self._aws = aws
        self._table = table
        self._warn = warn

    def read(self, region: str, now: datetime) -> Sequence[PoolEvent]:
        """Return the events that are not too old to count; DynamoDB deletes an item days late."""
        return self.memory(region, now).events

    def memory(self, region: str, now: datetime) -> PoolMemory:
        """Return these events, and the pools whose hours are counted."""
        with translated(f"read the memory of capacity pools in {region}"):
            # An eventually consistent read, at half the price: an event of the last second may be missing.
            items = [*self._items(region)]
        found = [self._read(_event_of, item) for item in items if not _is_held(item)]
        return PoolMemory(
            events=[event for event in found if event and now - event.at < POOL_EVENTS_KEPT],
            held=self._held(filter(_is_held, items)),
        )

    def put(self, region: str, events: Iterable[PoolEvent]) -> None:
        """Write events."""
        # No condition is needed: the key says all that the event tells, so a second write replaces the first.
        for event in {event.key: event for event in events}.values():
            with translated(f"write the memory of {event.pool}"):
                self._aws.dynamodb.put_item(TableName=self._table, Item=_item_of(region, event))

    def held(self, region: str) -> Sequence[HeldPool]:
        """Return the pools whose hours are counted."""
        with translated(f"read the held capacity pools in {region}"):
            return self._held(self._items(region, beginning=_HELD))

    def _held(self, items: Iterable[Mapping[str, Any]]) -> Sequence[HeldPool]:
        return [held for item in items if (held := self._read(_held_of, item))]

    def count(self, region: str, before: HeldPool | None, after: HeldPool) -> None:
        """Write that an hour of a pool is counted.

        Raises:
            Conflict: another cluster of the region counted in between.
        """
        condition: dict[str, Any] = {
            "ConditionExpression": "attribute_not_exists(#at)",
            "ExpressionAttributeNames": {"#at": "at"},
        }
        if before is not None:
            condition["ConditionExpression"] = "#at = :read"
            condition["ExpressionAttributeValues"] = strings(**{":read": time_to_text(before.at)})
        with translated(f"count an hour of {after.pool}"):
            self._aws.dynamodb.put_item(
                TableName=self._table, Item=_item_of_held(region, after), **condition
            )

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

    def _items(self, region: str, beginning: str = "") -> Iterator[Mapping[str, Any]]:
        names, values = {"#region": "region"}, {":region": region}
        condition = "#region = :region"
        if beginning:
            names, values = names | {"#event": "event"}, values | {":beginning": beginning}
            condition += " AND begins_with(#event, :beginning)"
        pages = self._aws.dynamodb.get_paginator("query").paginate(
            TableName=self._table,
            KeyConditionExpression=condition,
            ExpressionAttributeNames=names,
            ExpressionAttributeValues=strings(**values),
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


def _item_of_held(region: str, held: HeldPool) -> Item:
    item = strings(
        region=region,
        event=_HELD + "/".join(held.pool),
        since=time_to_text(held.since),
        at=time_to_text(held.at),
    )
    return {**item, "hours": {"N": repr(held.hours)}, TTL: expiry(held.at + POOL_EVENTS_KEPT)}


def _is_held(item: Mapping[str, Any]) -> bool:
    return bool(item["event"]["S"].startswith(_HELD))


def _held_of(item: Mapping[str, Any]) -> HeldPool:
    return HeldPool(
        pool=CapacityPool(*item["event"]["S"].removeprefix(_HELD).split("/")),
        since=text_to_time(item["since"]["S"]),
        hours=float(item["hours"]["N"]),
        at=text_to_time(item["at"]["S"]),
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
