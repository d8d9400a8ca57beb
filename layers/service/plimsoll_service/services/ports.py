"""What the service's use cases need of the world. Memory twins and AWS's hold to one contract suite."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Protocol

from plimsoll_service.domain.access import Invitation, Principal
from plimsoll_service.domain.advice import AdviceRequest
from plimsoll_service.domain.snapshots import Arrival
from plimsoll_service.services.audit import AuditLog
from plimsoll_service.wire.audit import AuditEntry


@dataclass(frozen=True, slots=True, kw_only=True)
class Document:
    """A document of a cluster."""

    key: str
    body: bytes
    """JSON."""
    version: int
    """Counts its writes, from 1."""


class TenantData(Protocol):
    """The data of one tenant. `cluster` is empty for what belongs to the tenant as a whole."""

    @property
    def audit(self) -> AuditLog:
        """The tenant's audit log."""
        ...

    def get(self, cluster: str, key: str) -> Document | None:
        """Return a document, or None: it is not there, or has expired."""
        ...

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
        """Write a document over the version that was read; 0: there is none yet. All that is kept expires.

        Args:
            cluster: whose document.
            key: its key.
            body: what it holds.
            version: the version that was read.
            expires: when it counts as absent.
            audit: a row that is appended with it: both are written, or neither.

        Raises:
            Conflict: somebody else wrote it since.
        """
        ...

    def list(
        self, cluster: str, first: str, last: str, *, limit: int = 1000, descending: bool = False
    ) -> Iterator[Document]:
        """Yield the documents from one key to another, both included, in the order of their keys.

        `descending` begins with the last one. Each is read when it is asked for: all of them may not fit into
        memory.
        """
        ...

    def delete(self, cluster: str, key: str) -> None:
        """Delete a document. Again is once."""
        ...

    def fault(self, cluster: str, key: str, why: str) -> None:
        """Tell the operator of a document, or a snapshot, that cannot be read or written: a fault of ours."""
        ...

    def put_snapshot(self, cluster: str, epoch: str, sequence: int, body: bytes) -> None:
        """Keep a snapshot as it came, compressed. Again is once.

        Raises:
            Conflict: another one was kept under that number.
        """
        ...

    def get_snapshot(self, cluster: str, epoch: str, sequence: int) -> bytes | None:
        """Return a snapshot as it came, or None: it is not there."""
        ...

    def has_snapshot(self, cluster: str, epoch: str, sequence: int) -> bool:
        """Whether a snapshot is there."""
        ...


class Tenants(Protocol):
    """The data of all tenants, one at a time."""

    def of(self, tenant: str) -> TenantData:
        """Return the data of one tenant; through it no other's can be reached."""
        ...


class Members(Protocol):
    """Who was invited, and who was let in."""

    def invite(self, digest: str, invitation: Invitation) -> None:
        """Keep an invitation under the digest of its join token."""
        ...

    def admit(
        self, digest: str, public_key: bytes, cluster_uid: str, now: datetime
    ) -> Principal | None:
        """Let a key in by a join token; whoever had the same subject is out: a key is replaced so.

        The same key by the same token is let in again as long as it is the current one.

        Returns:
            Whom it let in. None: the token is unknown, has expired, or let another key in; or the subject
            was replaced or revoked since the token was made.

        Raises:
            Conflict: the subject is another cluster, by its uid; revoke it first.
        """
        ...

    def get(self, subject: str) -> Principal | None:
        """Return a principal as it is now, or None: nobody, or revoked."""
        ...

    def revoke(self, subject: str, now: datetime) -> None:
        """Let nobody in by that subject's key, nor by a join token that was made for it before."""
        ...

    def agents(self) -> Sequence[Principal]:
        """Return the agents of all tenants."""
        ...

    def of_tenant(self, tenant: str, first: str, last: str, *, limit: int) -> Iterator[Principal]:
        """Yield who was let in to a tenant, from one subject to another, both included, by subject."""
        ...

    def once(self, word: str, expires: datetime) -> bool:
        """Whether a word is said for the first time; from now on it is not."""
        ...

    def count(self, word: str, expires: datetime, *, most: int) -> bool:
        """Count a word; return False, and count no further, where `most` were counted already.

        Of those who count at once, too, exactly `most` get True.
        """
        ...


class Queue(Protocol):
    """The queue of snapshots that were acknowledged."""

    def send(self, arrival: Arrival) -> None:
        """Send one.

        Raises:
            Temporary: it was not taken.
        """
        ...


class Bus(Protocol):
    """The bus on which the interruption path listens."""

    def forward(self, agent: str, instances: Sequence[str]) -> None:
        """Say that an agent saw interruption taints on the nodes of instances.

        Raises:
            Temporary: it was not taken.
        """
        ...

    def queue_changed(self, agent: str) -> None:
        """Say that an agent saw a Job of a queue change.

        Raises:
            Temporary: it was not taken.
        """
        ...


class AdviceQueue(Protocol):
    """The queue of requests for advice."""

    def send(self, requests: Sequence[AdviceRequest]) -> None:
        """Send them.

        Raises:
            Temporary: some were not taken. Sending all again is harmless.
        """
        ...


class TokenKeys(Protocol):
    """The keys by which access tokens are signed and known."""

    def newest(self) -> bytes:
        """Return the key that signs."""
        ...

    def all(self) -> Sequence[bytes]:
        """Return the keys by which a token may be signed: the newest one, and the one before it."""
        ...


class Clock(Protocol):
    """The time."""

    def now(self) -> datetime:
        """Return the time, in UTC."""
        ...
