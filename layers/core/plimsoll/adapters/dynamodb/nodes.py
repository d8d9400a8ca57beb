"""The index instance -> node: what a storm is looked up in, without a call to EC2."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import batched
from typing import TYPE_CHECKING, Final

from plimsoll.adapters.aws_errors import translated
from plimsoll.adapters.dynamodb.codec import entry_to_item, item_to_entry, strings
from plimsoll.adapters.dynamodb.tables import Warn, items_of, logged, readable, rounds
from plimsoll.domain.errors import Throttled
from plimsoll.domain.registry import IndexEntry

if TYPE_CHECKING:
    from mypy_boto3_dynamodb.type_defs import WriteRequestOutputTypeDef, WriteRequestTypeDef

    from plimsoll.adapters.aws import Aws

WRITE_BATCH_ITEMS: Final = 25
"""The most that one BatchWriteItem takes."""


class DynamoNodeIndex:
    """The table `nodes`."""

    def __init__(self, aws: Aws, table: str, warn: Warn = logged) -> None:
        self._aws = aws
        self._table = table
        self._warn = warn

    def find(self, instances: Sequence[str]) -> Mapping[str, IndexEntry]:
        """Return the entries that exist.

        Raises:
            Throttled: DynamoDB left some unread, again and again.
        """
        keys = [strings(instance=i) for i in dict.fromkeys(instances)]
        items = items_of(self._aws, self._table, keys, "the node index")
        found = (
            readable(item_to_entry, i, f"the index entry {i['instance']}", self._warn)
            for i in items
        )
        return {entry.instance: entry for entry in found if entry is not None}

    def put(self, entries: Sequence[IndexEntry]) -> None:
        """Write entries; the newest `seen` wins.

        A batch takes no conditions, so that the newest is found by reading first. Two writers in
        the same instant may leave the older one's: it names the same node, and the next resync
        writes again.

        Raises:
            Throttled: DynamoDB left some unwritten, again and again.
        """
        # Sorted by `seen`: the newest entry of an instance wins. DynamoDB refuses a batch that names one key twice.
        # https://docs.aws.amazon.com/amazondynamodb/latest/APIReference/API_BatchWriteItem.html
        newest: dict[str, IndexEntry] = {}
        for entry in sorted(entries, key=lambda entry: entry.seen):
            newest[entry.instance] = entry
        known = self.find(list(newest))
        wanted = [
            e
            for e in newest.values()
            if e.instance not in known or known[e.instance].seen <= e.seen
        ]
        for batch in batched(wanted, WRITE_BATCH_ITEMS, strict=False):
            self._write([{"PutRequest": {"Item": entry_to_item(entry)}} for entry in batch])

    def _write(self, requests: Sequence[WriteRequestTypeDef]) -> None:
        left: Sequence[WriteRequestTypeDef | WriteRequestOutputTypeDef] = requests
        for _ in rounds():
            with translated("write the node index"):
                answer = self._aws.dynamodb.batch_write_item(RequestItems={self._table: left})
            left = answer.get("UnprocessedItems", {}).get(self._table, [])
            if not left:
                return
        raise Throttled(f"the node index left {len(left)} of {len(requests)} entries unwritten")
