"""The journal of the executor: what it began, written before it acts, in the cluster itself.

It is the ConfigMap `plimsoll-agent-journal`, so it outlives the pod and its disk. Each write has the
resourceVersion of what was read as its precondition: of two executors one is told `Conflict`, and
does nothing. An instruction is begun at most once, whoever dies when.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime, timedelta
from typing import Final, Self

from msgspec import Struct
from msgspec.structs import replace

from plimsoll.adapters.kubernetes.requests import Requests
from plimsoll.domain.errors import BadInput
from plimsoll.domain.kubernetes import NAMESPACE
from plimsoll_agent.calls import GET_JOURNAL, JOURNAL, PATCH_JOURNAL
from plimsoll_service.wire.documents import Malformed, decode, encode
from plimsoll_service.wire.instructions import Instruction, Outcome, Result

KEPT: Final = 200
"""Entries; what is older and reported is forgotten, but for the highest number and the drains of the hour:
else a flood of instructions, all of them refused, would let one more drain begin."""
_KEY: Final = "journal"
_HOUR: Final = timedelta(hours=1)
_LONGEST: Final = 1000


class Entry(Struct, frozen=True, kw_only=True):
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
    """That were to be written."""
    outcome: Outcome | None = None
    """None: it is under way, or whoever began it died."""
    reason: str = ""
    ended: datetime | None = None
    reported: bool = False

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

    last: int = 0
    """The highest number that was answered: none up to it is begun again."""
    entries: tuple[Entry, ...] = ()

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

    def answered(self, number: int) -> bool:
        """Whether an instruction of this number was begun or refused before."""
        return number <= self.last

    def open(self) -> Iterator[Entry]:
        """Yield what was begun and has no outcome."""
        return (entry for entry in self.entries if entry.outcome is None)

    def unreported(self) -> tuple[Entry, ...]:
        """Return what ended and what the service does not know."""
        return tuple(e for e in self.entries if e.outcome is not None and not e.reported)

    def drained_since(self, now: datetime) -> tuple[int, int]:
        """Return how many drains were begun within the hour, and for how many pods."""
        recent = [entry for entry in self.entries if entry.drained_since(now - _HOUR)]
        return len(recent), sum(entry.pods for entry in recent)

    def begin(self, instruction: Instruction, now: datetime, *, pods: int = 0) -> Journal:
        """Return it with an instruction begun."""
        entry = Entry(
            id=instruction.id,
            number=instruction.number,
            kind=instruction.kind,
            node=instruction.target.name,
            uid=instruction.target.uid,
            begun=now,
            pods=pods,
            labels=dict(instruction.labels),
        )
        kept = [
            e
            for e in self.entries
            if e.outcome is None or not e.reported or e.drained_since(now - _HOUR)
        ]
        told = [e for e in self.entries if e not in kept]
        entries = (*told[-KEPT:], *kept, entry)
        return Journal(
            last=max(self.last, instruction.number),
            entries=tuple(sorted(entries, key=lambda e: e.number)),
        )

    def end(self, number: int, outcome: Outcome, reason: str, now: datetime) -> Journal:
        """Return it with the outcome of an instruction."""
        changes = {"outcome": outcome, "reason": reason[:_LONGEST], "ended": now}
        return self._changed({number}, **changes)

    def reported(self, numbers: set[int]) -> Journal:
        """Return it without these among the unreported."""
        return self._changed(numbers, reported=True)

    def _changed(self, numbers: set[int], **changes: object) -> Journal:
        entries = (replace(e, **changes) if e.number in numbers else e for e in self.entries)
        return replace(self, entries=tuple(entries))


class ConfigMapJournal:
    """Keeps a journal in the ConfigMap `plimsoll-agent-journal`."""

    def __init__(self, requests: Requests) -> None:
        self._requests = requests
        self._version = ""

    def load(self) -> Journal:
        """Return the journal.

        Raises:
            PlimsollError: it is missing, cannot be read, or is none.
        """
        found = self._requests.send(GET_JOURNAL, namespace=NAMESPACE, name=JOURNAL)
        self._version = found["metadata"]["resourceVersion"]
        text = (found.get("data") or {}).get(_KEY)
        return Journal.parse(text) if text else Journal()

    def save(self, journal: Journal) -> None:
        """Write the journal in the place of the one that was loaded or saved last.

        Raises:
            Conflict: somebody else wrote meanwhile.
            PlimsollError: it cannot be written.
        """
        body = {
            "metadata": {"resourceVersion": self._version},
            "data": {_KEY: encode(journal).decode()},
        }
        written = self._requests.send(PATCH_JOURNAL, namespace=NAMESPACE, name=JOURNAL, body=body)
        self._version = written["metadata"]["resourceVersion"]
