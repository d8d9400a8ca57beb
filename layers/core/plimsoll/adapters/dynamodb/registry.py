"""The registered clusters, one item each."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from plimsoll.adapters.aws_errors import translated
from plimsoll.adapters.dynamodb.codec import cluster_to_item, item_to_cluster, strings
from plimsoll.adapters.dynamodb.tables import Warn, logged, readable
from plimsoll.domain.errors import Conflict, NotFound
from plimsoll.domain.registry import Cluster

if TYPE_CHECKING:
    from plimsoll.adapters.aws import Aws


class DynamoRegistry:
    """The table `clusters`. Reads are consistent: a mode that was set counts at once."""

    def __init__(self, aws: Aws, table: str, warn: Warn = logged) -> None:
        self._aws = aws
        self._table = table
        self._warn = warn

    def get(self, name: str) -> Cluster | None:
        """Return a cluster, or None when nobody registered it, or its row cannot be read.

        Raises:
            PlimsollError: the table cannot be read.
        """
        with translated(f"read cluster {name} from the registry"):
            answer = self._aws.dynamodb.get_item(
                TableName=self._table, Key=strings(cluster=name), ConsistentRead=True
            )
        return self._cluster(answer["Item"]) if "Item" in answer else None

    def list(self) -> Sequence[Cluster]:
        """Return all clusters, by name."""
        found = (self._cluster(item) for item in self._scan())
        return sorted((each for each in found if each is not None), key=lambda each: each.name)

    def names(self) -> Sequence[str]:
        """Return the names of all clusters; a right to read no other attribute is enough."""
        items = self._scan(
            Select="SPECIFIC_ATTRIBUTES",
            ProjectionExpression="#cluster",
            ExpressionAttributeNames={"#cluster": "cluster"},
        )
        return sorted(item["cluster"]["S"] for item in items)

    def agents(self) -> Mapping[str, str]:
        """Return agent -> name of its cluster; a right to read these two attributes is enough."""
        items = self._scan(
            Select="SPECIFIC_ATTRIBUTES",
            ProjectionExpression="#cluster, #agent",
            ExpressionAttributeNames={"#cluster": "cluster", "#agent": "agent"},
        )
        return {item["agent"]["S"]: item["cluster"]["S"] for item in items if "agent" in item}

    def add(self, cluster: Cluster) -> None:
        """Add a cluster.

        Raises:
            Conflict: the name is taken.
        """
        # botocore repeats a write whose answer was lost, and the repetition is
        # a Conflict too: then the cluster is registered, as the user asked.
        try:
            self._put(cluster, "attribute_not_exists(#cluster)")
        except Conflict as error:
            raise Conflict(f"a cluster is registered as {cluster.name} already") from error

    def update(self, cluster: Cluster) -> None:
        """Replace what is known of a cluster.

        Raises:
            NotFound: it is not registered.
        """
        try:
            self._put(cluster, "attribute_exists(#cluster)")
        except Conflict as error:
            raise NotFound(f"no cluster is registered as {cluster.name}") from error

    def remove(self, name: str) -> None:
        """Remove a cluster.

        Raises:
            NotFound: it is not registered.
        """
        try:
            with translated(f"remove cluster {name} from the registry"):
                self._aws.dynamodb.delete_item(
                    TableName=self._table,
                    Key=strings(cluster=name),
                    ConditionExpression="attribute_exists(#cluster)",
                    ExpressionAttributeNames={"#cluster": "cluster"},
                )
        except Conflict as error:
            raise NotFound(f"no cluster is registered as {name}") from error

    def _cluster(self, item: Mapping[str, Any]) -> Cluster | None:
        return readable(item_to_cluster, item, f"the cluster {item.get('cluster')}", self._warn)

    def _scan(self, **only: Any) -> Sequence[Mapping[str, Any]]:
        with translated("list the registry"):
            pages = self._aws.dynamodb.get_paginator("scan").paginate(
                TableName=self._table, ConsistentRead=True, **only
            )
            return [item for page in pages for item in page["Items"]]

    def _put(self, cluster: Cluster, condition: str) -> None:
        with translated(f"write cluster {cluster.name} to the registry"):
            self._aws.dynamodb.put_item(
                TableName=self._table,
                Item=cluster_to_item(cluster),
                ConditionExpression=condition,
                ExpressionAttributeNames={"#cluster": "cluster"},
            )
