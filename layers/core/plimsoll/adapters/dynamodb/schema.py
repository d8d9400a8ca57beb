"""The three tables, as CreateTable takes them. `template.yaml` says the same; a test compares.

One table for each store: so that each function's role can be held to those it uses.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

TTL: Final = "expires"
"""The attribute that DynamoDB deletes an item by, in epoch seconds."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Table:
    """Keys of a table; all key attributes are strings."""

    key: str
    indexes: Mapping[str, tuple[str, str]] = field(default_factory=dict)
    """Global secondary index -> its partition key and sort key."""
    ttl: bool = True

    def create(self, name: str) -> dict[str, Any]:
        """Return the arguments of CreateTable."""
        attributes = dict.fromkeys((self.key, *(a for keys in self.indexes.values() for a in keys)))
        request: dict[str, Any] = {
            "TableName": name,
            "BillingMode": "PAY_PER_REQUEST",
            "AttributeDefinitions": [
                {"AttributeName": a, "AttributeType": "S"} for a in attributes
            ],
            "KeySchema": [{"AttributeName": self.key, "KeyType": "HASH"}],
        }
        if self.indexes:
            request["GlobalSecondaryIndexes"] = [
                {
                    "IndexName": index,
                    "KeySchema": [
                        {"AttributeName": partition, "KeyType": "HASH"},
                        {"AttributeName": sort, "KeyType": "RANGE"},
                    ],
                    "Projection": {"ProjectionType": "ALL"},
                }
                for index, (partition, sort) in self.indexes.items()
            ]
        return request


TABLES: Final[Mapping[str, Table]] = {
    "ClustersTable": Table(key="cluster", ttl=False),
    "NodesTable": Table(key="instance"),
    "ReportsTable": Table(key="interruption", indexes={"newest": ("cluster", "noticed")}),
}
"""By their names in the template."""
