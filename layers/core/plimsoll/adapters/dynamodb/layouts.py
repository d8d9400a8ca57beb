"""The layouts chosen for promised workloads, in the table `times`: one item for each, written by the run that comes first.

Placement is imported with this module, so the functions import it when they first place a cluster.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final

from plimsoll.adapters.aws_errors import translated
from plimsoll.adapters.dynamodb.codec import (
    TTL,
    Item,
    expiry,
    strings,
    text_to_time,
    time_to_text,
)
from plimsoll.adapters.dynamodb.tables import Warn, items_of, logged, readable
from plimsoll.domain.kubernetes import Ref
from plimsoll.domain.placement import LAYOUTS_KEPT, ChosenLayout, Layout, Promise

if TYPE_CHECKING:
    from plimsoll.adapters.aws import Aws

_PREFIX: Final = "layout/"
"""Of the workload in a key. No workload whose times are kept in the table has it, and all layouts of a cluster are read
by it at once."""


class DynamoLayouts:
    """The rows of layouts in the table `times`."""

    def __init__(self, aws: Aws, table: str, warn: Warn = logged) -> None:
        self._aws = aws
        self._table = table
        self._warn = warn

    def read(self, cluster: str) -> Mapping[Ref, ChosenLayout]:
        """Return the layouts that were chosen for the workloads of a cluster."""
        with translated(f"read the layouts chosen for {cluster}"):
            pages = self._aws.dynamodb.get_paginator("query").paginate(
                TableName=self._table,
                KeyConditionExpression="#cluster = :cluster AND begins_with(#workload, :layouts)",
                ExpressionAttributeNames={"#cluster": "cluster", "#workload": "workload"},
                ExpressionAttributeValues=strings(**{":cluster": cluster, ":layouts": _PREFIX}),
                ConsistentRead=True,
            )
            items = [item for page in pages for item in page["Items"]]
        return dict(found for item in items if (found := self._chosen(item)) is not None)

    def write(
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
                TableName=self._table, Item=_to_item(cluster, workload, after), **condition
            )

    def _unreadable(self, cluster: str, workload: Ref) -> str | None:
        """Return when a row was written that cannot be read, and may be written over; None where there is none."""
        keys = [strings(cluster=cluster, workload=_name(workload))]
        for item in items_of(self._aws, self._table, keys, "the layouts", consistent=True):
            if self._chosen(item) is None:
                at: str | None = item.get("at", {}).get("S")
                return at
        return None

    def _chosen(self, item: Mapping[str, Any]) -> tuple[Ref, ChosenLayout] | None:
        return readable(_from_item, item, f"the layout of {item['workload']}", self._warn)


def _name(workload: Ref) -> str:
    return _PREFIX + "/".join(workload)


def _to_item(cluster: str, workload: Ref, chosen: ChosenLayout) -> Item:
    layout = chosen.layout
    item = strings(
        cluster=cluster,
        workload=_name(workload),
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


def _from_item(item: Mapping[str, Any]) -> tuple[Ref, ChosenLayout]:
    kind, namespace, name = item["workload"]["S"].removeprefix(_PREFIX).split("/")
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
