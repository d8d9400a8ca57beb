"""The journal of the executor: what it began, written before it acts, in the cluster itself.

It is the ConfigMap `plimsoll-agent-journal`, so it outlives the pod and its disk. Each write has the
resourceVersion of what was read as its precondition: of two executors one is told `Conflict`, and
does nothing. An instruction is begun at most once, whoever dies when.

Instructions are taken in the order in which they were issued, and numbers tell apart only those of one
moment: a huge number shuts out nothing, nor does a service that counts anew. Enrolment writes the first
journal. Wherever there is none later, it was lost: what was issued before may have been carried out.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import datetime, timedelta
from typing import Final, Self

from msgspec import Struct
from msgspec.structs import replace

from plimsoll.adapters.kubernetes.requests import Requests
from plimsoll.domain.errors import BadInput
from plimsoll.domain.kubernetes import NAMESPACE
from plimsoll.services.ports import Clock
from plimsoll_agent.calls import GET_JOURNAL, JOURNAL, PATCH_JOURNAL
from plimsoll_service.wire.documents import Malformed, decode, encode
from plimsoll_service.wire.instructions import Instruction, Outcome, Result

KEPT_ENTRIES: Final = 200
"""Entries; what is older and reported is forgotten, but for the drains of the hour:
else a flood of instructions, all of them refused, would let one more drain begin."""
_KEY: Final = "journal"
HOUR: Final = timedelta(hours=1)
CLOCKS_APART: Final = timedelta(minutes=5)
"""How far the clocks of service and cluster may differ."""
_LONGEST: Final = 1000
"""Characters of a reason."""


class JournalEntry(Struct, frozen=True, kw_only=True):
    """One instruction that was begun, or answered without."""

    id: str
    number: int
    kind: str
    node: str
    uid: str
    begun: datetime
    pods: int = 0
    """That had to leave, when it was begun."""
    labels: dict[str, str | None] = {}
    """That are to be written; none once it ended."""
    outcome: Outcome | None = None
    """None: it is under way, or whoever began it died."""
    reason: str = ""
    ended: datetime | None = None
    reported: bool = False

    def is_of(self, instruction: Instruction) -> bool:
        """Whether it is about this instruction: a service that counts anew gives a number again."""
        return (self.number, self.id) == (instruction.number, instruction.id)

    def drained_since(self, since: datetime) -> bool:
        """Whether it is a drain that was begun after that time."""
        acted = self.outcome not in {"refused", "would-do"}
        return acted and self.kind == "consolidate-node" and self.begun > since

    def result(self) -> Result:
        """Return what is reported to the service."""
        return Result(
            id=self.id,
            number=self.number,
            outcome=self.outcome or "failed",
            reason=self.reason,
            at=self.ended or self.begun,
        )


class Journal(Struct, frozen=True, kw_only=True):
    """All that is remembered of instructions."""

    issued: datetime | None = None
    """When the latest instruction that was answered was issued: none issued earlier is begun."""
    last: int = 0
    """Its number: none of the same moment up to it is begun."""
    since: datetime | None = None
    """When it was found that the journal before this one was lost."""
    entries: tuple[JournalEntry, ...] = ()

    @classmethod
    def parse(cls, text: str) -> Self:
        """Read a journal.

        Raises:
            BadInput: it is none. Without a journal nothing is begun.
        """
        try:
            return decode(text.encode(), cls)
        except Malformed as error:
            raise BadInput(f"ConfigMap {JOURNAL}: {error}") from error

    @classmethod
    def after_loss(cls, now: datetime) -> Self:
        """Return the journal that follows a lost one: all that the lost one may have held has passed."""
        return cls(issued=now + CLOCKS_APART, since=now)

    def answered(self, instruction: Instruction) -> bool:
        """Whether an instruction, or one that was issued later, was begun or refused before."""
        if self.find(instruction) is not None:
            return True
        if self.issued is None:
            return instruction.number <= self.last
        return (instruction.issued_at, instruction.number) <= (self.issued, self.last)

    def find(self, instruction: Instruction) -> JournalEntry | None:
        """Return the entry of an instruction; None where there is none any more."""
        return next((entry for entry in self.entries if entry.is_of(instruction)), None)

    def open(self) -> Iterator[JournalEntry]:
        """Yield what was begun and has no outcome."""
        return (entry for entry in self.entries if entry.outcome is None)

    def unreported(self) -> tuple[JournalEntry, ...]:
        """Return what ended and what the service does not know."""
        return tuple(e for e in self.entries if e.outcome is not None and not e.reported)

    def drained_since(self, now: datetime) -> tuple[int, int]:
        """Return how many drains were begun within the hour, and for how many pods."""
        recent = [entry for entry in self.entries if entry.drained_since(now - HOUR)]
        return len(recent), sum(entry.pods for entry in recent)

    def begin(self, instruction: Instruction, now: datetime) -> Journal:
        """Return it with an instruction begun, for as many pods as it may move."""
        entry = JournalEntry(
            id=instruction.id,
            number=instruction.number,
            kind=instruction.kind,
            node=instruction.target.name,
            uid=instruction.target.uid,
            begun=now,
            pods=instruction.preconditions.most_pods,
            labels=dict(instruction.labels),
        )
        spare = [
            e
            for e in self.entries
            if e.outcome is not None and e.reported and not e.drained_since(now - HOUR)
        ]
        kept = (e for e in self.entries if e not in spare[:-KEPT_ENTRIES])
        issued, last = self.issued, self.last
        ours = instruction.issued_at, instruction.number
        # An instruction from the future must not shut out all others until then.
        if instruction.issued_at <= now + CLOCKS_APART and (
            issued is None or ours > (issued, last)
        ):
            issued, last = ours
        return replace(self, issued=issued, last=last, entries=(*kept, entry))

    def end(self, entry: JournalEntry, outcome: Outcome, reason: str, now: datetime) -> Journal:
        """Return it with the outcome of an instruction."""
        changes = {"outcome": outcome, "reason": reason[:_LONGEST], "ended": now, "labels": {}}
        return self._changed([entry], **changes)

    def reported(self, entries: Sequence[JournalEntry]) -> Journal:
        """Return it without these among the unreported."""
        return self._changed(entries, reported=True)

    def _changed(self, these: Sequence[JournalEntry], **changes: object) -> Journal:
        entries = (replace(e, **changes) if e in these else e for e in self.entries)
        return replace(self, entries=tuple(entries))


class ConfigMapJournal:
    """Keeps a journal in the ConfigMap `plimsoll-agent-journal`."""

    def __init__(self, requests: Requests, clock: Clock) -> None:
        self._requests = requests
        self._clock = clock
        self._version = ""

    def establish(self) -> None:
        """Write the first journal, at enrolment; one that is there stays.

        Raises:
            PlimsollError: the ConfigMap is missing, or cannot be read or written.
        """
        if not self._read():
            self.save(Journal())

    def load(self) -> Journal:
        """Return the journal; a new one, which is written, where it was lost.

        Raises:
            PlimsollError: the ConfigMap is missing, cannot be read or written, or holds no journal.
        """
        if text := self._read():
            return Journal.parse(text)
        journal = Journal.after_loss(self._clock.now())
        self.save(journal)
        return journal

    def save(self, journal: Journal) -> None:
        """Write the journal in the place of the one that was loaded or saved last.

        Raises:
            Conflict: somebody else wrote meanwhile.
            PlimsollError: it cannot be written.
        """
        # The resourceVersion makes the write conditional: the API
        # server answers 409 if somebody else wrote since the read.
        body = {
            "metadata": {"resourceVersion": self._version},
            "data": {_KEY: encode(journal).decode()},
        }
        written = self._requests.send(PATCH_JOURNAL, namespace=NAMESPACE, name=JOURNAL, body=body)
        # The next write uses this version and needs no read.
        self._version = written["metadata"]["resourceVersion"]

    def _read(self) -> str | None:
        found = self._requests.send(GET_JOURNAL, namespace=NAMESPACE, name=JOURNAL)
        self._version = found["metadata"]["resourceVersion"]
        return (found.get("data") or {}).get(_KEY)
