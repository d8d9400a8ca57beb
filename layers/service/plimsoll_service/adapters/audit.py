"""Audit rows in DynamoDB: the table `audit`, by tenant and time.

Rows are put under the condition that they are absent. Nothing here updates or deletes one, and no role may.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import msgspec
from botocore.exceptions import ClientError

from plimsoll.adapters.aws_errors import code_of, translated
from plimsoll.adapters.dynamodb.tables import readable
from plimsoll_service.adapters.aws import ServiceAws
from plimsoll_service.adapters.faults import Tell, logged
from plimsoll_service.domain.access import checked_name
from plimsoll_service.services.audit import KEPT, key_of
from plimsoll_service.wire.audit import AuditEntry
from plimsoll_service.wire.documents import encode


@dataclass(frozen=True, slots=True, kw_only=True)
class DynamoAudit:
    """The audit rows of one tenant."""

    aws: ServiceAws
    table: str
    tenant: str
    tell: Tell = logged

    def append(self, entry: AuditEntry) -> None:
        """Append a row; one that is there stays as it is."""
        with translated(f"record {entry.action} of {entry.object}"):
            try:
                self.aws.dynamodb.put_item(**self.put_of(entry))
            except ClientError as error:
                # Other conflicts, with a transaction under way, leave open whether the row is there.
                if code_of(error) != "ConditionalCheckFailedException":
                    raise

    def put_of(self, entry: AuditEntry) -> dict[str, Any]:
        """Return the put of a row, also as part of a transaction."""
        # Each field is an attribute: people read the table too.
        fields = msgspec.json.decode(encode(entry))
        version = {"N": str(fields.pop("version"))}
        item = {name: {"S": value} for name, value in fields.items()} | {
            "tenant": {"S": checked_name(self.tenant, "a tenant")},
            "entry": {"S": key_of(entry)},
            "version": version,
            "expires": {"N": str(int((entry.at + KEPT).timestamp()))},
        }
        return {
            "TableName": self.table,
            "Item": item,
            "ConditionExpression": "attribute_not_exists(tenant)",
        }

    def list(self, before: str = "") -> Iterator[tuple[str, AuditEntry]]:
        """Yield rows with their keys, newest first."""
        values = {":tenant": {"S": self.tenant}}
        if before:
            values[":before"] = {"S": before}
        with translated(f"read the audit log of {self.tenant}"):
            pages = self.aws.dynamodb.get_paginator("query").paginate(
                TableName=self.table,
                KeyConditionExpression=f"tenant = :tenant{' AND entry < :before' if before else ''}",
                ExpressionAttributeValues=values,
                ScanIndexForward=False,
                ConsistentRead=True,
            )
            for page in pages:
                for item in page["Items"]:
                    key = item["entry"]["S"]
                    entry = self._read(key, item)
                    if entry is not None:
                        yield key, entry

    def _read(self, key: str, item: Mapping[str, Any]) -> AuditEntry | None:
        """Return what a row tells, or None: it cannot be read, and the operator is told."""

        def fault(why: str) -> None:
            self.tell(tenant=self.tenant, table=self.table, key=key, why=why)

        return readable(_entry, item, key, fault)


def _entry(item: Mapping[str, Any]) -> AuditEntry:
    fields: dict[str, Any] = {
        name: item[name]["S"] for name in AuditEntry.__struct_fields__ if name != "version"
    }
    return msgspec.convert(fields | {"version": int(item["version"]["N"])}, AuditEntry)
