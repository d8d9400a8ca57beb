"""How long pods took to stop and to start: one item for each workload, merged under an optimistic version."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from itertools import batched
from typing import TYPE_CHECKING, Any, Final

from plimsoll.adapters.aws_errors import translated
from plimsoll.adapters.dynamodb.codec import item_to_samples, samples_to_item, strings
from plimsoll.domain.errors import Conflict, Throttled
from plimsoll.domain.kubernetes import Ref
from plimsoll.domain.observation import Samples

if TYPE_CHECKING:
    from plimsoll.adapters.aws import Aws

READ_BATCH: Final = 100
ROUNDS: Final = 5
"""How often what DynamoDB left unprocessed is asked for again before it counts as throttling."""
ATTEMPTS: Final = 3
"""A reconcile and a placement run that write the same workload at the same time."""


class DynamoTimes:
    """The table `times`."""

    def __init__(self, aws: Aws, table: str) -> None:
        self._aws = aws
        self._table = table

    def read(self, cluster: str, workloads: Collection[Ref]) -> Mapping[Ref, Samples]:
        """Return what is remembered of these workloads; those of which nothing is are left out.

        Raises:
            Throttled: DynamoDB left some unread, again and again.
        """
        found: dict[Ref, Samples] = {}
        named = {str(workload): workload for workload in workloads}
        for names in batched(named, READ_BATCH, strict=False):
            for item in self._items(cluster, names):
                found[named[item["workload"]["S"]]] = item_to_samples(item)
        return found

    def merge(self, cluster: str, workload: Ref, told: Samples) -> None:
        """Merge into what is remembered; what is told again changes nothing, and writes nothing.

        Raises:
            Conflict: others wrote in between, three times in a row.
        """
        for _ in range(ATTEMPTS - 1):
            try:
                return self._merge_once(cluster, workload, told)
            except Conflict:
                continue
        return self._merge_once(cluster, workload, told)

    def _merge_once(self, cluster: str, workload: Ref, told: Samples) -> None:
        item = next(iter(self._items(cluster, [str(workload)], consistent=True)), None)
        known = Samples() if item is None else item_to_samples(item)
        merged = known.merged(told)
        if merged == known:
            return
        version = 0 if item is None else int(item["version"]["N"])
        condition: dict[str, Any] = (
            {"ConditionExpression": "attribute_not_exists(workload)"}
            if item is None
            else {
                "ConditionExpression": "version = :read",
                "ExpressionAttributeValues": {":read": {"N": str(version)}},
            }
        )
        with translated(f"write the observed times of {workload}"):
            self._aws.dynamodb.put_item(
                TableName=self._table,
                Item=samples_to_item(cluster, workload, merged, version + 1),
                **condition,
            )

    def _items(
        self, cluster: str, names: Sequence[str], *, consistent: bool = False
    ) -> Sequence[Mapping[str, Any]]:
        found: list[Mapping[str, Any]] = []
        keys = [strings(cluster=cluster, workload=name) for name in names]
        for _ in range(ROUNDS):
            with translated("read the observed times"):
                answer = self._aws.dynamodb.batch_get_item(
                    RequestItems={self._table: {"Keys": keys, "ConsistentRead": consistent}}
                )
            found += answer["Responses"].get(self._table, [])
            left = answer.get("UnprocessedKeys", {}).get(self._table)
            if not left:
                return found
            keys = [dict(key) for key in left["Keys"]]
        raise Throttled(f"the observed times of {len(keys)} of {len(names)} workloads are unread")
