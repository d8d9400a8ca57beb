"""In-memory twins of what the optimisation service keeps: for rigs and for tests.

They hold to the same contract suite as AWS's (`tests/contract/test_service_stores.py`).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from itertools import islice
from threading import Lock

from plimsoll.domain.errors import Conflict
from plimsoll_service.domain.access import Invitation, Principal
from plimsoll_service.domain.advice import AdviceRequest
from plimsoll_service.domain.snapshots import Arrival
from plimsoll_service.services.audit import key_of
from plimsoll_service.services.ports import Clock, Document
from plimsoll_service.wire.audit import AuditEntry


@dataclass(slots=True)
class MemoryTenants:
    """The data of all tenants."""

    clock: Clock
    _data: dict[str, MemoryTenantData] = field(default_factory=dict)

    def of(self, tenant: str) -> MemoryTenantData:
        """Return the data of one tenant."""
        return self._data.setdefault(tenant, MemoryTenantData(self.clock))


@dataclass(slots=True)
class MemoryAudit:
    """The audit rows of one tenant, by key."""

    _rows: dict[str, AuditEntry] = field(default_factory=dict)

    def append(self, entry: AuditEntry) -> None:
        """Append a row; one that is there stays as it is."""
        self._rows.setdefault(key_of(entry), entry)

    def list(self, before: str = "") -> Iterator[tuple[str, AuditEntry]]:
        """Yield rows with their keys, newest first."""
        for key in sorted(self._rows, reverse=True):
            if not before or key < before:
                yield key, self._rows[key]


@dataclass(slots=True)
class MemoryTenantData:
    """The data of one tenant."""

    clock: Clock
    _documents: dict[tuple[str, str], tuple[Document, datetime]] = field(default_factory=dict)
    _snapshots: dict[tuple[str, str, int], bytes] = field(default_factory=dict)
    faults: list[tuple[str, str, str]] = field(default_factory=list)
    """Cluster, key and reason of what could not be read or written."""
    audit: MemoryAudit = field(default_factory=MemoryAudit)

    def get(self, cluster: str, key: str) -> Document | None:
        """Return a document that has not expired."""
        found = self._documents.get((cluster, key))
        if found is None:
            return None
        document, expires = found
        return document if expires > self.clock.now() else None

    def put(  # noqa: PLR0913 - those of the port
        self,
        cluster: str,
        key: str,
        body: bytes,
        *,
        version: int = 0,
        expires: datetime,
        audit: AuditEntry | None = None,
    ) -> Document:
        """Write a document over the version that was read, with an audit row.

        Raises:
            Conflict: somebody else wrote it since.
        """
        found = self.get(cluster, key)
        if (found.version if found else 0) != version:
            raise Conflict(f"{key} of {cluster} was written meanwhile")
        made = Document(key=key, body=body, version=version + 1)
        self._documents[cluster, key] = made, expires
        if audit is not None:
            self.audit.append(audit)
        return made

    def list(
        self, cluster: str, first: str, last: str, *, limit: int = 1000, descending: bool = False
    ) -> Iterator[Document]:
        """Yield the documents between two keys, in their order."""
        keys = sorted((key for its, key in self._documents if its == cluster), reverse=descending)
        found = (self.get(cluster, key) for key in keys if first <= key <= last)
        return islice((document for document in found if document is not None), limit)

    def delete(self, cluster: str, key: str) -> None:
        """Delete a document."""
        self._documents.pop((cluster, key), None)

    def fault(self, cluster: str, key: str, why: str) -> None:
        """Remember a fault."""
        self.faults.append((cluster, key, why))

    def put_snapshot(self, cluster: str, epoch: str, sequence: int, body: bytes) -> None:
        """Keep a snapshot; one that was kept is never written over."""
        if self._snapshots.setdefault((cluster, epoch, sequence), body) != body:
            raise Conflict(f"{sequence} of {epoch} is there, and is another one")

    def get_snapshot(self, cluster: str, epoch: str, sequence: int) -> bytes | None:
        """Return a snapshot."""
        return self._snapshots.get((cluster, epoch, sequence))

    def forget_snapshots(self) -> None:
        """Delete all snapshots, as the bucket does once they are old."""
        self._snapshots.clear()

    def has_snapshot(self, cluster: str, epoch: str, sequence: int) -> bool:
        """Whether a snapshot is there."""
        return (cluster, epoch, sequence) in self._snapshots


@dataclass(slots=True)
class MemoryMembers:
    """Who was invited, and who was let in."""

    _invited: dict[str, tuple[Invitation, str]] = field(default_factory=dict)
    """By the digest of the join token: the invitation, and the change of the subject that it follows."""
    _members: dict[str, Principal] = field(default_factory=dict)
    _changes: dict[str, str] = field(default_factory=dict)
    _said: Counter[str] = field(default_factory=Counter)
    _lock: Lock = field(default_factory=Lock)

    def invite(self, digest: str, invitation: Invitation) -> None:
        """Keep an invitation."""
        self._invited[digest] = invitation, self._changes.get(invitation.subject, "")

    def admit(
        self, digest: str, public_key: bytes, cluster_uid: str, now: datetime
    ) -> Principal | None:
        """Let a key in by a join token.

        Raises:
            Conflict: the subject is another cluster.
        """
        invitation, replaces = self._invited.get(digest, (None, ""))
        if invitation is None or invitation.expires <= now:
            return None
        principal = Principal.admitted(invitation, public_key, cluster_uid)
        known = self._members.get(principal.subject)
        if known is not None and known.cluster_uid != cluster_uid:
            raise Conflict(
                f"{principal.name} is enrolled already, as another cluster: revoke it first"
            )
        change = self._changes.get(principal.subject, "")
        if change != replaces and not (change == digest and known == principal):
            return None
        self._members[principal.subject] = principal
        self._changes[principal.subject] = digest
        return principal

    def get(self, subject: str) -> Principal | None:
        """Return a principal."""
        return self._members.get(subject)

    def revoke(self, subject: str, now: datetime) -> None:
        """Let nobody in by that subject's key, nor by what was given out for it."""
        self._members.pop(subject, None)
        self._changes[subject] = f"revoked at {now} after {self._changes.get(subject)}"

    def agents(self) -> Sequence[Principal]:
        """Return the agents of all tenants."""
        return [p for p in self._members.values() if p.role == "agent"]

    def of_tenant(self, tenant: str, first: str, last: str, *, limit: int) -> Iterator[Principal]:
        """Yield who was let in to a tenant."""
        found = (self._members[subject] for subject in sorted(self._members))
        of_tenant = (p for p in found if p.tenant == tenant and first <= p.subject <= last)
        return islice(of_tenant, limit)

    def once(self, word: str, expires: datetime) -> bool:
        """Whether a word is said for the first time."""
        return self.count(f"once#{word}", expires, most=1)

    def count(self, word: str, expires: datetime, *, most: int) -> bool:  # noqa: ARG002 - memory is short-lived
        """Count a word, up to `most`."""
        with self._lock:
            counted = self._said[word] < most
            self._said[word] += counted
            return counted


@dataclass(slots=True)
class MemoryQueue:
    """The queue of snapshots that were acknowledged."""

    sent: list[Arrival] = field(default_factory=list)

    def send(self, arrival: Arrival) -> None:
        """Send one."""
        self.sent.append(arrival)


@dataclass(slots=True)
class MemoryAdviceQueue:
    """The queue of requests for advice."""

    sent: list[AdviceRequest] = field(default_factory=list)

    def send(self, requests: Sequence[AdviceRequest]) -> None:
        """Send them."""
        self.sent += requests


@dataclass(frozen=True, slots=True)
class MemoryTokenKeys:
    """The keys of access tokens, the newest first."""

    keys: Sequence[bytes]

    def newest(self) -> bytes:
        """Return the key that signs."""
        return self.keys[0]

    def all(self) -> Sequence[bytes]:
        """Return all keys."""
        return self.keys
