"""How long the pods of workloads took to stop and to start: one item for each workload, merged under an optimistic version."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from plimsoll.adapters.dynamodb.codec import (
    item_to_samples,
    samples_to_item,
    strings,
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

ATTEMPTS: Final = 3
"""A reconcile and a placement run that write the same workload at the same time."""


class DynamoObservedTimes:
    """The table `times`; see also `plimsoll.adapters.dynamodb.layouts`."""

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

    def _items(
        self, cluster: str, names: Iterable[str], *, consistent: bool = False
    ) -> Iterator[Mapping[str, Any]]:
        keys = [strings(cluster=cluster, workload=name) for name in names]
        return items_of(self._aws, self._table, keys, "the observed times", consistent=consistent)
