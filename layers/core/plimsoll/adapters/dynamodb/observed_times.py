"""What is remembered of workloads: how long their pods took to stop and to start, and the layouts chosen for promises.

One item for each workload and each of both. Times are merged under an optimistic version; of a layout the run that comes
first decides.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from plimsoll.adapters.aws_errors import translated
from plimsoll.adapters.dynamodb.codec import (
    item_to_samples,
    samples_to_item,
    strings,
    time_to_text,
    version_of,
)
from plimsoll.adapters.dynamodb.tables import (
    Warn,
    items_of,
    logged,
    merged,
    put_version,
    readable,
)
from plimsoll.domain.kubernetes import Ref
from plimsoll.domain.observation import Samples

if TYPE_CHECKING:
    from plimsoll.adapters.aws import Aws
    from plimsoll.domain.placement import ChosenLayout

ATTEMPTS: Final = 3
"""A reconcile and a placement run that write the same workload at the same time."""


class DynamoObservedTimes:
    """The table `times`."""

    def __init__(self, aws: Aws, table: str, warn: Warn = logged) -> None:
        self._aws = aws
        self._table = table
        self._warn = warn

    def read(self, cluster: str, workloads: Collection[Ref]) -> Mapping[Ref, Samples]:
        """Return what is remembered of these workloads; those of which nothing is are left out.

        Raises:
            Throttled: DynamoDB left some unread, again and again.
        """
        found: dict[Ref, Samples] = {}
        named = {str(workload): workload for workload in workloads}
        for item in self._items(cluster, named):
            samples = self._samples(item)
            if samples is not None:
                found[named[item["workload"]["S"]]] = samples
        return found

    def _samples(self, item: Mapping[str, Any]) -> Samples | None:
        return readable(item_to_samples, item, f"the times of {item['workload']}", self._warn)

    def merge(self, cluster: str, workload: Ref, told: Samples) -> None:
        """Merge into what is remembered; what is told again changes nothing, and writes nothing.

        Raises:
            Conflict: others wrote in between, three times in a row.
        """
        merged(ATTEMPTS, partial(self._merge_once, cluster, workload, told))

    def _merge_once(self, cluster: str, workload: Ref, told: Samples) -> None:
        item = next(self._items(cluster, [str(workload)], consistent=True), None)
        known = (None if item is None else self._samples(item)) or Samples()
        now = known.merged(told)
        if now != known:
            made, what = samples_to_item(cluster, workload, now), f"write the times of {workload}"
            put_version(self._aws, self._table, made, version_of(item), what)

    def layouts(self, cluster: str) -> Mapping[Ref, ChosenLayout]:
        """Return the layouts that were chosen for workloads."""
        from plimsoll.adapters.dynamodb.layout_codec import (  # noqa: PLC0415 - it imports placement
            LAYOUTS,
            item_to_layout,
        )

        found: dict[Ref, ChosenLayout] = {}
        with translated(f"read the layouts chosen for {cluster}"):
            pages = self._aws.dynamodb.get_paginator("query").paginate(
                TableName=self._table,
                KeyConditionExpression="#cluster = :cluster AND begins_with(#workload, :layouts)",
                ExpressionAttributeNames={"#cluster": "cluster", "#workload": "workload"},
                ExpressionAttributeValues=strings(**{":cluster": cluster, ":layouts": LAYOUTS}),
                ConsistentRead=True,
            )
            items = [item for page in pages for item in page["Items"]]
        for item in items:
            what = f"the layout of {item['workload']}"
            read = readable(item_to_layout, item, what, self._warn)
            if read is not None:
                workload, chosen = read
                found[workload] = chosen
        return found

    def choose_layout(
        self, cluster: str, workload: Ref, before: ChosenLayout | None, after: ChosenLayout
    ) -> None:
        """Write the layout that is chosen for a workload, where what was read still stands.

        Raises:
            Conflict: another run chose in between.
        """
        from plimsoll.adapters.dynamodb.layout_codec import item_of_layout  # noqa: PLC0415 - as above

        condition: dict[str, Any] = {
            "ConditionExpression": "attribute_not_exists(#at)",
            "ExpressionAttributeNames": {"#at": "at"},
        }
        read = self._unreadable(cluster, workload) if before is None else time_to_text(before.at)
        if read is not None:
            condition["ConditionExpression"] = "#at = :read"
            condition["ExpressionAttributeValues"] = strings(**{":read": read})
        with translated(f"write the layout of {workload}"):
            self._aws.dynamodb.put_item(
                TableName=self._table, Item=item_of_layout(cluster, workload, after), **condition
            )

    def _unreadable(self, cluster: str, workload: Ref) -> str | None:
        """Return when a row was written that cannot be read, and may be written over; None where there is none."""
        from plimsoll.adapters.dynamodb.layout_codec import (  # noqa: PLC0415 - as above
            LAYOUTS,
            item_to_layout,
        )

        key = LAYOUTS + "/".join(workload)
        for item in self._items(cluster, [key], consistent=True):
            if readable(item_to_layout, item, f"the layout of {workload}", self._warn) is None:
                at: str | None = item.get("at", {}).get("S")
                return at
        return None

    def _items(
        self, cluster: str, names: Iterable[str], *, consistent: bool = False
    ) -> Iterator[Mapping[str, Any]]:
        keys = [strings(cluster=cluster, workload=name) for name in names]
        return items_of(self._aws, self._table, keys, "the observed times", consistent=consistent)
