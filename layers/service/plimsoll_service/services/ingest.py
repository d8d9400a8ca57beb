"""Snapshots: taken in and acknowledged by the API, and worked off behind the queue.

What is acknowledged lies in the bucket and is named in the queue. Everything after that may die, come
twice or out of order: each step is carried out again with the same result.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from hashlib import sha256
from typing import Final

from plimsoll.domain.errors import BadInput, Conflict, Discardable, Temporary
from plimsoll_service.domain.access import Principal
from plimsoll_service.domain.advice import AdviceRequest, configuration_of
from plimsoll_service.domain.errors import Forbidden, TooLarge
from plimsoll_service.domain.gpu import ClassDaySum
from plimsoll_service.domain.snapshots import (
    Arrival,
    Newest,
    Rollup,
    Span,
    combined_rollup,
    due_rollups,
    newest_after,
    rollup_of,
    seen_columns,
)
from plimsoll_service.services.cluster_rows import tell_seen
from plimsoll_service.services.gpu_history import keep_class_days
from plimsoll_service.services.history import NEWEST, last_advice
from plimsoll_service.services.instructions import pending
from plimsoll_service.services.limits import count
from plimsoll_service.services.ports import (
    AdviceQueue,
    Clock,
    Document,
    Members,
    Queue,
    TenantData,
    Tenants,
)
from plimsoll_service.services.stored import read, stored
from plimsoll_service.wire import snapshot as wire
from plimsoll_service.wire.access import Accepted
from plimsoll_service.wire.documents import Malformed, encode

MOST_COMPRESSED_BYTES: Final = 4 * 2**20
"""Lambda takes requests of 6 MB, in base64."""
POLL_SECONDS: Final = 60
SNAPSHOTS_PER_MINUTE: Final = 60
"""Of one cluster. Its agent sends one, and after an outage those of its spool."""
ATTEMPTS: Final = 5
REMADE_AFTER: Final = timedelta(minutes=10)
"""Since one hour or day of a cluster was made anew, until the next one is."""
AHEAD: Final = timedelta(minutes=5)
"""How far the clock of a cluster may be ahead of ours."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Intake:
    """Takes snapshots in."""

    tenants: Tenants
    members: Members
    queue: Queue
    clock: Clock
    snapshots_per_minute: int = SNAPSHOTS_PER_MINUTE
    """Of one cluster."""

    def take(self, agent: Principal, body: bytes) -> Accepted:
        """Keep a snapshot, and acknowledge it.

        Raises:
            Malformed: it is no snapshot, of a time whose usage nobody keeps, or another one than was kept
                under its number.
            Forbidden: it is of another cluster.
            TooLarge: it is too large to be taken.
            Throttled: the agent sends too many.
            Temporary: it could not be kept; it was not acknowledged, and is sent again.
        """
        now = self.clock.now()
        most = self.snapshots_per_minute
        # Counted before the body is read: refused requests cost as well. Of each cluster apart: a tenant may send more
        # with each cluster that an operator lets in, and none takes the share of another.
        count(self.members, agent.subject, "snapshots", most=most, now=now)
        if len(body) > MOST_COMPRESSED_BYTES:
            raise TooLarge(f"the snapshot has {len(body)} bytes; {MOST_COMPRESSED_BYTES} are taken")
        snapshot = wire.decode(body)
        if snapshot.cluster_id != agent.subject:
            raise Forbidden("the snapshot is of another cluster than its token")
        if not _is_word(snapshot.epoch):
            raise Malformed("has an epoch that is no UUID - at `$.epoch`")
        if not now - Span.MINUTE.kept <= snapshot.taken_at <= now + AHEAD:
            raise Malformed(
                f"was taken at {snapshot.taken_at:%Y-%m-%dT%H:%M:%SZ}, and it is {now:%Y-%m-%dT%H:%M:%SZ}: "
                "see to the clock of the cluster - at `$.taken_at`"
            )
        data = self.tenants.of(agent.tenant)
        try:
            # Stored before the message is sent: the function that reads the message finds the snapshot.
            data.put_snapshot(agent.subject, snapshot.epoch, snapshot.sequence, body)
        except Conflict as error:
            raise Malformed(
                f"is another one than was sent as {snapshot.sequence} before - at `$.sequence`"
            ) from error
        self.queue.send(
            Arrival(
                tenant=agent.tenant,
                cluster=agent.subject,
                epoch=snapshot.epoch,
                sequence=snapshot.sequence,
                base=snapshot.base,
                received_at=now,
                digest=sha256(body).hexdigest(),
            )
        )
        return Accepted(
            accepted=snapshot.sequence,
            instructions_pending=bool(pending(data, agent.subject, most=1).instructions),
            next_poll_s=POLL_SECONDS,
            left_out=snapshot.left_out,
            resync=not snapshot.full
            and not data.has_snapshot(agent.subject, snapshot.epoch, snapshot.base),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class IngestService:
    """Works off the queue."""

    tenants: Tenants
    advice: AdviceQueue
    clock: Clock

    def work(self, arrival: Arrival) -> bool:
        """Work one snapshot in; return whether it is the newest of its cluster now.

        The newest one asks for advice, where the last advice was made of another configuration. Until
        there is such advice each snapshot asks, so that a request which is lost is made again.

        Raises:
            Temporary: it comes back.
            Discardable: its agent sent what makes no snapshot.
            BadInput: it cannot be worked in, now or ever, and its agent is not to blame.
        """
        data = self.tenants.of(arrival.tenant)
        snapshot = read_whole(data, arrival)
        minute, configuration = rollup_of(snapshot), configuration_of(snapshot)
        seen = seen_columns(snapshot, arrival.received_at)
        del snapshot  # the largest thing in memory, before the hour is read
        for _ in range(ATTEMPTS):
            try:
                is_newest = self._work(data, arrival, minute)
            except Conflict:
                continue
            if is_newest:
                # After the document that says so: one that comes late, or again, was overruled there.
                tell_seen(data, arrival, seen, self.clock.now())
                self._ask_for_advice(data, arrival, configuration)
            return is_newest
        raise Temporary(f"others wrote about {arrival.cluster} {ATTEMPTS} times meanwhile")

    def _ask_for_advice(self, data: TenantData, arrival: Arrival, configuration: str) -> None:
        last, _ = last_advice(data, arrival.cluster)
        if last is None or last.configuration != configuration:
            request = AdviceRequest(
                tenant=arrival.tenant, cluster=arrival.cluster, at=self.clock.now()
            )
            self.advice.send([request])

    def _work(self, data: TenantData, arrival: Arrival, minute: Rollup) -> bool:
        """Write the minute, then what is made of it, and only then say which one is the newest.

        Who dies in between is followed by one who does it all again.
        """
        cluster = arrival.cluster
        known, version = stored(data, cluster, NEWEST, Newest)
        _put_minute(data, cluster, minute)
        if known is not None and known.is_of(arrival):
            return True
        newest = newest_after(known, arrival, minute.last)
        said = newest or known
        if known is not None and said is not None:
            owed, remade_at = self._make_one(data, cluster, known, minute.last)
            said = replace(said, owed=owed, remade_at=remade_at)
        # A late one is written over what was read, too. Else another, which closes the hour at the same
        # time, would have counted its minutes before this one was there, and nobody would again.
        expires = self.clock.now() + Span.DAY.kept
        data.put(cluster, NEWEST, encode(said), version=version, expires=expires)
        return newest is not None

    def _make_one(
        self, data: TenantData, cluster: str, known: Newest, taken: datetime
    ) -> tuple[tuple[tuple[Span, datetime], ...], datetime | None]:
        """Make at most one hour or day; return what is owed then, and when one was made anew last.

        An hour that was never made is made at once. All others wait, for later snapshots too, until ten minutes
        have passed since the last one: a late snapshot costs little more than another.
        """
        due = list(due_rollups(taken, known.taken_at))
        owed, now = {*known.owed, *due}, self.clock.now()
        if due and data.get(cluster, due[0][0].key(due[0][1])) is None:
            made, remade_at = due[0], known.remade_at
        elif owed and (known.remade_at is None or now - known.remade_at >= REMADE_AFTER):
            made, remade_at = min(owed, key=lambda each: (each[0].length, each[1])), now
        else:
            return tuple(sorted(owed)), known.remade_at
        _make_anew(data, cluster, *made)
        return tuple(sorted(owed - {made})), remade_at


def read_whole(data: TenantData, arrival: Arrival) -> wire.Snapshot:
    """Return the snapshot of an arrival, whole: a delta is applied to its base.

    Raises:
        Temporary: it is not in the bucket.
        Discardable: its agent never sent its base, or makes more of that than a snapshot may hold.
        BadInput: it is not what was acknowledged.
    """
    body = data.get_snapshot(arrival.cluster, arrival.epoch, arrival.sequence)
    if body is None:
        raise Temporary(f"{_name(arrival)} is not in the bucket")
    if sha256(body).hexdigest() != arrival.digest:
        raise BadInput(f"{_name(arrival)} is not what was acknowledged")
    try:
        change = wire.decode(body)
        if change.full:
            return change
        base = data.get_snapshot(arrival.cluster, arrival.epoch, arrival.base)
        if base is None:
            raise Discardable(f"{_name(arrival)}: its base {arrival.base} never came")
        return wire.apply(wire.decode_objects(base), change)
    except Malformed as error:
        raise Discardable(f"{_name(arrival)} {error}") from error


def _name(arrival: Arrival) -> str:
    return f"the snapshot {arrival.epoch} {arrival.sequence} of {arrival.cluster}"


def _put_minute(data: TenantData, cluster: str, minute: Rollup) -> None:
    known, version = stored(data, cluster, Span.MINUTE.key(minute.start), Rollup)
    # The latest snapshot of a minute counts: an earlier one that arrives late changes nothing.
    if known is None or known.last < minute.last:
        _put(data, cluster, Span.MINUTE, minute, version)


def _make_anew(data: TenantData, cluster: str, span: Span, start: datetime) -> None:
    """Make an hour or a day anew; one that holds more samples stays."""
    parts = Span.MINUTE if span is Span.HOUR else Span.HOUR
    known, version = stored(data, cluster, span.key(start), Rollup)
    last = start + span.length - parts.length
    documents = data.list(cluster, parts.key(start), parts.key(last))
    gpus = ClassDaySum()
    made = combined_rollup(_with_gpus(data, cluster, documents, gpus), span)
    if made is None:
        return
    keep_class_days(data, cluster, gpus)  # before the hour: who dies in between does both again
    if known is None or known.samples <= made.samples:
        _put(data, cluster, span, made, version)


def _with_gpus(
    data: TenantData, cluster: str, documents: Iterable[Document], gpus: ClassDaySum
) -> Iterator[Rollup]:
    """Yield the rollups that documents hold, and add what they tell of GPUs."""
    for document in documents:
        part = read(data, cluster, document, Rollup)
        if part is None:
            continue
        if part.gpus is not None:
            gpus.add(part.start, part.gpus)
        yield part


def _put(data: TenantData, cluster: str, span: Span, made: Rollup, version: int) -> None:
    key, expires = span.key(made.start), made.start + span.kept
    data.put(cluster, key, encode(made), version=version, expires=expires)


def _is_word(text: str) -> bool:
    """Whether an epoch may stand in a key: `/` and `#` would reach elsewhere."""
    return len(text) <= 64 and all(c.isalnum() or c == "-" for c in text) and text.isascii()  # noqa: PLR2004 - a UUID has 36
