"""The data of tenants: documents in DynamoDB, snapshots and large documents in S3."""

from __future__ import annotations

import gzip
import zlib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from hashlib import sha256
from itertools import islice
from typing import Any, Final

from botocore.exceptions import ClientError

from plimsoll.adapters.aws_errors import code_of, translated
from plimsoll.domain.errors import Conflict
from plimsoll_service.adapters.audit import DynamoAudit
from plimsoll_service.adapters.aws import ServiceAws
from plimsoll_service.adapters.faults import Tell, logged
from plimsoll_service.domain.access import document_key, leading_key, snapshot_key
from plimsoll_service.services.ports import Clock, Document
from plimsoll_service.wire.audit import AuditEntry

MOST_ITEM_BYTES: Final = 380 * 1024
"""An item has 400 KB, names of its attributes included."""
_MISSING: Final = frozenset({"NoSuchKey", "404", "NotFound", "AccessDenied", "403"})
"""Who may not list a bucket is told 403 of what is not there; listing would show others' names.
https://docs.aws.amazon.com/AmazonS3/latest/API/API_GetObject.html"""


@dataclass(frozen=True, slots=True, kw_only=True)
class AwsTenants:
    """The data of all tenants."""

    sessions: Callable[[str], ServiceAws]
    """Tenant -> clients that reach its data alone."""
    table: str
    audit_table: str
    bucket: str
    clock: Clock
    tell: Tell = logged

    def of(self, tenant: str) -> AwsTenantData:
        """Return the data of one tenant."""
        return AwsTenantData(
            aws=self.sessions(tenant),
            table=self.table,
            audit_table=self.audit_table,
            bucket=self.bucket,
            tenant=tenant,
            clock=self.clock,
            tell=self.tell,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class AwsTenantData:
    """The data of one tenant."""

    aws: ServiceAws
    table: str
    audit_table: str
    bucket: str
    tenant: str
    clock: Clock
    tell: Tell = logged

    @property
    def audit(self) -> DynamoAudit:
        """The tenant's audit log."""
        return DynamoAudit(aws=self.aws, table=self.audit_table, tenant=self.tenant, tell=self.tell)

    def get(self, cluster: str, key: str) -> Document | None:
        """Return a document that has not expired; one whose bytes are lost or broken is empty."""
        with translated(f"read {key}"):
            answer = self.aws.dynamodb.get_item(
                TableName=self.table, Key=self._key(cluster, key), ConsistentRead=True
            )
        return self._document(answer.get("Item"))

    def put(  # noqa: PLR0913 - a document, and what it is written with
        self,
        cluster: str,
        key: str,
        body: bytes,
        *,
        version: int = 0,
        expires: datetime,
        audit: AuditEntry | None = None,
    ) -> Document:
        """Write a document over the version that was read, with an audit row in the same transaction.

        One that has expired counts as absent, though DynamoDB may not have deleted it yet.

        Raises:
            Conflict: somebody else wrote it since.
        """
        packed = gzip.compress(body, mtime=0)
        item: dict[str, Any] = self._key(cluster, key) | {
            "version": {"N": str(version + 1)},
            "expires": {"N": str(int(expires.timestamp()))},
        }
        if len(packed) <= MOST_ITEM_BYTES:
            item["body"] = {"B": packed}
        else:
            # Named by what is in it, too: who is about to be told of a conflict has uploaded already.
            digest = sha256(packed).hexdigest()
            name = document_key(
                self.tenant,
                cluster,
                f"{key}/{version + 1}-{digest[:16]}",
                expires - self.clock.now(),
            )
            # The object is written before the row that names it: a row then always finds its bytes.
            self._upload(name, packed)
            item["object"] = {"S": name}
        now = {":now": {"N": str(int(self.clock.now().timestamp()))}}
        absent = "attribute_not_exists(tenant_cluster) OR expires <= :now"
        same = {":read": {"N": str(version)}}
        put: dict[str, Any] = {
            "TableName": self.table,
            "Item": item,
            "ConditionExpression": "version = :read" if version else absent,
            "ExpressionAttributeValues": same if version else now,
        }
        with translated(f"write {key}"):
            if audit is None:
                self.aws.dynamodb.put_item(**put)
            else:
                both: Any = [{"Put": put}, {"Put": self.audit.put_of(audit)}]
                self.aws.dynamodb.transact_write_items(TransactItems=both)
        return Document(key=key, body=body, version=version + 1)

    def list(
        self, cluster: str, first: str, last: str, *, limit: int = 1000, descending: bool = False
    ) -> Iterator[Document]:
        """Yield the documents between two keys, in their order."""
        listed = self._listed(cluster, first, last, page=limit, descending=descending)
        return islice(listed, limit)

    def _listed(
        self, cluster: str, first: str, last: str, *, page: int, descending: bool
    ) -> Iterator[Document]:
        if last < first:  # DynamoDB refuses such a query
            return
        with translated(f"list {first} to {last}"):
            pages = self.aws.dynamodb.get_paginator("query").paginate(
                TableName=self.table,
                KeyConditionExpression="tenant_cluster = :cluster AND document_key BETWEEN :first AND :last",
                ExpressionAttributeValues={
                    ":cluster": {"S": leading_key(self.tenant, cluster)},
                    ":first": {"S": first},
                    ":last": {"S": last},
                },
                ConsistentRead=True,
                ScanIndexForward=not descending,
                PaginationConfig={
                    "PageSize": page
                },  # no more is read, and billed, than may be asked for
            )
            for each in pages:
                for item in each["Items"]:
                    document = self._document(item)
                    if document is not None:
                        yield document

    def delete(self, cluster: str, key: str) -> None:
        """Delete a document."""
        with translated(f"delete {key}"):
            self.aws.dynamodb.delete_item(TableName=self.table, Key=self._key(cluster, key))

    def fault(self, cluster: str, key: str, why: str) -> None:
        """Tell the operator."""
        self.tell(tenant=self.tenant, cluster=cluster, key=key, why=why)

    def put_snapshot(self, cluster: str, epoch: str, sequence: int, body: bytes) -> None:
        """Keep a snapshot; one that was kept is never written over."""
        name = snapshot_key(self.tenant, cluster, epoch, sequence)
        try:
            self._upload(name, body, IfNoneMatch="*")
        # 412: an object of that name exists. With the same bytes it is a repetition, by the agent or by botocore.
        # https://docs.aws.amazon.com/AmazonS3/latest/userguide/conditional-writes.html
        except Conflict:
            if self._download(name) != body:
                raise

    def get_snapshot(self, cluster: str, epoch: str, sequence: int) -> bytes | None:
        """Return a snapshot."""
        return self._download(snapshot_key(self.tenant, cluster, epoch, sequence))

    def has_snapshot(self, cluster: str, epoch: str, sequence: int) -> bool:
        """Whether a snapshot is there."""
        name = snapshot_key(self.tenant, cluster, epoch, sequence)
        return self._asked(name, self.aws.s3.head_object) is not None

    def _upload(self, name: str, body: bytes, **condition: str) -> None:
        with translated(f"write {name}"):
            self.aws.s3.put_object(Bucket=self.bucket, Key=name, Body=body, **condition)

    def _download(self, name: str) -> bytes | None:
        answer = self._asked(name, self.aws.s3.get_object)
        if answer is None:
            return None
        with translated(f"read {name}"):
            body: bytes = answer["Body"].read()
        return body

    def _asked(self, name: str, ask: Callable[..., Any]) -> Any:
        """Ask for an object; None: it is not there."""
        with translated(f"read {name}"):
            try:
                return ask(Bucket=self.bucket, Key=name)
            except ClientError as error:
                if code_of(error) in _MISSING:
                    return None
                raise

    def _key(self, cluster: str, key: str) -> dict[str, Any]:
        return {
            "tenant_cluster": {"S": leading_key(self.tenant, cluster)},
            "document_key": {"S": key},
        }

    def _document(self, item: Mapping[str, Any] | None) -> Document | None:
        if item is None:
            return None
        expires = item.get("expires")
        if expires is not None and int(expires["N"]) <= self.clock.now().timestamp():
            return None
        if "object" in item:
            packed = self._download(item["object"]["S"]) or b""
        else:
            packed = bytes(item.get("body", {}).get("B", b""))
        key = item["document_key"]["S"]
        try:
            body = gzip.decompress(packed)
        except (OSError, EOFError, zlib.error) as error:
            self.fault(item["tenant_cluster"]["S"], key, f"is no gzip: {error}")
            body = b""
        return Document(key=key, body=body, version=int(item["version"]["N"]))
