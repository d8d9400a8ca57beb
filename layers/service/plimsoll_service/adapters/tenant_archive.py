"""All that the service keeps of one tenant, for an operator: to hand it over, and to delete it.

It is found by how keys begin, and not by what the service knows: what a request under way wrote after a
removal is found by the next one.
"""

from __future__ import annotations

import gzip
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from zipfile import ZipFile

import msgspec

from plimsoll.adapters.aws_errors import translated
from plimsoll_service.adapters.audit import DynamoAudit
from plimsoll_service.adapters.aws import ServiceAws
from plimsoll_service.adapters.members import DynamoMembers
from plimsoll_service.domain.access import object_prefixes
from plimsoll_service.wire.documents import encode


@dataclass(frozen=True, slots=True, kw_only=True)
class TenantArchive:
    """The members, people, documents, snapshots and audit rows of one tenant."""

    aws: ServiceAws
    """With rights to the tables and to the bucket."""
    members: str
    """Name of the table."""
    people: str
    """Name of the table."""
    documents: str
    """Name of the table."""
    audit: str
    """Name of the table. What it holds is handed over, and stays until it expires."""
    bucket: str
    tenant: str

    def export(self, to: ZipFile) -> int:
        """Write all into an archive, under the names of the tables and of the bucket; return how many files.

        Raises:
            PlimsollError: it cannot be read.
        """
        files = 0
        for item in self._members():
            told = {key: value["S"] for key, value in item.items() if "S" in value}
            to.writestr(f"members/{told['id']}.json", msgspec.json.encode(told))
            files += 1
        for item in self._people():
            told = {key: next(iter(value.values())) for key, value in item.items()}
            to.writestr(f"people/{told['id']}.json", msgspec.json.encode(told))
            files += 1
        for item in self._documents():
            if "body" in item:  # else the bucket has it
                name = f"{item['tenant_cluster']['S']}/{item['document_key']['S']}"
                to.writestr(f"rows/{name}.json", gzip.decompress(item["body"]["B"]))
                files += 1
        log = DynamoAudit(aws=self.aws, table=self.audit, tenant=self.tenant)
        for key, entry in log.list():
            to.writestr(f"audit/{key}.json", encode(entry))
            files += 1
        for key in self._objects():
            with translated(f"read {key}"):
                body = self.aws.s3.get_object(Bucket=self.bucket, Key=key)["Body"].read()
            to.writestr(key, body)
            files += 1
        return files

    def remove(self, now: datetime) -> int:
        """Revoke all members, and delete what is kept; return how many rows and objects were deleted.

        Raises:
            PlimsollError: something is left. Removing again goes on.
        """
        # Members first: after that, only requests under way add data.
        members = DynamoMembers(aws=self.aws, table=self.members)
        for item in self._members():
            if "subject" in item:
                members.revoke(item["subject"]["S"], now)
            else:
                self._delete(self.members, {"id": item["id"]})
        for item in self._people():
            self._delete(self.people, {name: item[name] for name in ("tenant", "id")})
        deleted = 0
        for item in self._documents():
            row = {name: item[name] for name in ("tenant_cluster", "document_key")}
            self._delete(self.documents, row)
            deleted += 1
        for key in self._objects():
            with translated(f"delete {key}"):
                self.aws.s3.delete_object(Bucket=self.bucket, Key=key)
            deleted += 1
        return deleted

    def _members(self) -> Iterator[Mapping[str, Any]]:
        return self._scanned(self.members, "#name = :value", "tenant", self.tenant)

    def _people(self) -> Iterator[Mapping[str, Any]]:
        yield from self._scanned(self.people, "#name = :value", "tenant", self.tenant)
        starts = "begins_with(#name, :value)"  # bindings share a partition
        yield from self._scanned(self.people, starts, "id", f"{self.tenant}#")

    def _documents(self) -> Iterator[Mapping[str, Any]]:
        starts = "begins_with(#name, :value)"
        return self._scanned(self.documents, starts, "tenant_cluster", f"{self.tenant}#")

    def _scanned(
        self, table: str, condition: str, name: str, value: str
    ) -> Iterator[Mapping[str, Any]]:
        with translated(f"read {table}"):
            pages = self.aws.dynamodb.get_paginator("scan").paginate(
                TableName=table,
                FilterExpression=condition,
                ExpressionAttributeNames={"#name": name},
                ExpressionAttributeValues={":value": {"S": value}},
                ConsistentRead=True,
            )
            for page in pages:
                yield from page["Items"]

    def _objects(self) -> Iterator[str]:
        for prefix in object_prefixes(self.tenant):
            with translated(f"list {prefix}"):
                pages = self.aws.s3.get_paginator("list_objects_v2").paginate(
                    Bucket=self.bucket, Prefix=prefix
                )
                for page in pages:
                    yield from (found["Key"] for found in page.get("Contents", ()))

    def _delete(self, table: str, key: Mapping[str, Any]) -> None:
        with translated(f"delete a row of {table}"):
            self.aws.dynamodb.delete_item(TableName=table, Key=key)
