from __future__ import annotations

from plimsoll.adapters.dynamodb.nodes import DynamoNodeIndex
from plimsoll.adapters.dynamodb.registry import DynamoRegistry
from plimsoll.adapters.dynamodb.reports import DynamoReports

__all__ = ["DynamoNodeIndex", "DynamoRegistry", "DynamoReports"]
