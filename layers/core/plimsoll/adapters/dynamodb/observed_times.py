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
    TTL,
    Item,
    expiry,
    item_to_samples,
    samples_to_item,
    strings,
    text_to_time,
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
from plimsoll.domain.placement import LAYOUTS_KEPT, ChosenLayout, Layout, Promise

if TYPE_CHECKING:
    from plimsoll.adapters.aws import Aws

_LAYOUTS: Final = "layout/"
"""Before a workload whose layout was chosen, so that all of a cluster are read at once."""
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
        found: dict[Ref, ChosenLayout] = {}
        with translated(f"read the layouts chosen for {cluster}"):
            pages = self._aws.dynamodb.get_paginator("query").paginate(
                TableName=self._table,
                KeyConditionExpression="#cluster = :cluster AND begins_with(#workload, :layouts)",
                ExpressionAttributeNames={"#cluster": "cluster", "#workload": "workload"},
                ExpressionAttributeValues=strings(**{":cluster": cluster, ":layouts": _LAYOUTS}),
                ConsistentRead=True,
            )
            items = [item for page in pages for item in page["Items"]]
        for item in items:
            what = f"the layout of {item['workload']}"
            read = readable(_chosen_of, item, what, self._warn)
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
                TableName=self._table, Item=_item_of_chosen(cluster, workload, after), **condition
            )

    def _unreadable(self, cluster: str, workload: Ref) -> str | None:
        """Return when a row was written that cannot be read, and may be written over; None where there is none."""
        key = _LAYOUTS + "/".join(workload)
        for item in self._items(cluster, [key], consistent=True):
            if readable(_chosen_of, item, f"the layout of {workload}", self._warn) is None:
                at: str | None = item.get("at", {}).get("S")
                return at
        return None

    def _items(
        self, cluster: str, names: Iterable[str], *, consistent: bool = False
    ) -> Iterator[Mapping[str, Any]]:
        keys = [strings(cluster=cluster, workload=name) for name in names]
        return items_of(self._aws, self._table, keys, "the observed times", consistent=consistent)


def _item_of_chosen(cluster: str, workload: Ref, chosen: ChosenLayout) -> Item:
    layout = chosen.layout
    item = strings(
        cluster=cluster,
        workload=_LAYOUTS + "/".join(workload),
        promise=str(chosen.promise),
        layout=f"{layout.on_demand_groups}-{layout.spot_groups}",
        at=time_to_text(chosen.at),
        **{
            name: None if at is None else time_to_text(at)
            for name, at in (
                ("changed", chosen.changed),
                ("above", chosen.above),
                ("below", chosen.below),
            )
        },
    )
    return {**item, TTL: expiry(chosen.at + LAYOUTS_KEPT)}


def _chosen_of(item: Mapping[str, Any]) -> tuple[Ref, ChosenLayout]:
    kind, namespace, name = item["workload"]["S"].removeprefix(_LAYOUTS).split("/")
    on_demand, spot = map(int, item["layout"]["S"].split("-"))
    changed, above, below = (
        text_to_time(item[attribute]["S"]) if attribute in item else None
        for attribute in ("changed", "above", "below")
    )
    return Ref(kind, namespace, name), ChosenLayout(
        promise=Promise.parse(item["promise"]["S"]),
        layout=Layout(on_demand, spot),
        changed=changed,
        above=above,
        below=below,
        at=text_to_time(item["at"]["S"]),
    )
