"""The table of preemptions, one item each, for 30 days."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import timedelta
from typing import Any, Final

from plimsoll.adapters.aws import Aws
from plimsoll.adapters.aws_errors import translated
from plimsoll.adapters.dynamodb.codec import TTL, expiry, strings, text_to_time, time_to_text
from plimsoll.adapters.dynamodb.tables import Warn, logged, readable
from plimsoll_batch.domain.jobs import PreemptionRecord

KEEP: Final = timedelta(days=30)
MOST_PAGES: Final = 20
"""Of 1 MB, that one question reads."""


class DynamoPreemptions:
    """Implements `plimsoll_batch.services.ports.PreemptionHistory`.

    Args:
        aws: the clients of the stack's region.
        table: its name.
        warn: told of items that cannot be read.
    """

    def __init__(self, aws: Aws, table: str, warn: Warn = logged) -> None:
        self._aws = aws
        self._table = table
        self._warn = warn

    def add(self, cluster: str, record: PreemptionRecord) -> None:
        """Write one; written twice it is one.

        Raises:
            PlimsollError: DynamoDB did not take it in time.
        """
        item = {
            **strings(cluster=cluster, at=f"{time_to_text(record.at)}#{record.gang}"),
            **strings(gang=record.gang, queue=record.queue, by=record.by, why=record.why),
            TTL: expiry(record.at + KEEP),
        }
        with translated(f"record a preemption in {cluster}"):
            # One attempt: gangs wait meanwhile, and the next cycle tries again.
            self._aws.single_attempt_dynamodb.put_item(TableName=self._table, Item=item)

    def list(
        self, cluster: str, *, limit: int, queue: str | None = None
    ) -> Sequence[PreemptionRecord]:
        """Return so many of a cluster, or of gangs of one of its queues, the newest first.

        Raises:
            PlimsollError: DynamoDB did not answer in time.
        """
        query: dict[str, Any] = {
            "TableName": self._table,
            "KeyConditionExpression": "#cluster = :cluster",
            "ExpressionAttributeNames": {"#cluster": "cluster"},
            "ExpressionAttributeValues": strings(**{":cluster": cluster}),
            "ScanIndexForward": False,
        }
        if queue is None:
            query["Limit"] = limit
        else:  # DynamoDB would count what the filter leaves out
            query["FilterExpression"] = "#queue = :queue"
            query["ExpressionAttributeNames"]["#queue"] = "queue"
            query["ExpressionAttributeValues"] |= strings(**{":queue": queue})
        found: list[PreemptionRecord] = []
        for _ in range(MOST_PAGES):
            with translated(f"read preemptions in {cluster}"):
                answer: Mapping[str, Any] = self._aws.dynamodb.query(**query)
            for item in answer["Items"]:
                record = readable(_record_of, item, f"a preemption in {cluster}", self._warn)
                if record is not None:
                    found.append(record)
            after = answer.get("LastEvaluatedKey")
            if after is None or len(found) >= limit:
                break
            query["ExclusiveStartKey"] = after
        return found[:limit]


def _record_of(item: Mapping[str, Any]) -> PreemptionRecord:
    at, _, _ = item["at"]["S"].partition("#")
    return PreemptionRecord(
        gang=item["gang"]["S"],
        queue=item["queue"]["S"],
        at=text_to_time(at),
        by=item["by"]["S"],
        why=item["why"]["S"],
    )
