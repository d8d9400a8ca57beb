"""Snapshots on disk until the service has them: bounded, oldest first, and there after a restart.

A delta needs the full snapshot it was made from, and nothing needs a delta. So where there is no
space left the oldest delta goes, and a full snapshot only after all deltas.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Self

from plimsoll.domain.errors import BadInput

_NAME: Final = re.compile(r"([0-9]{15})-([0-9a-f-]{1,64})-([0-9]{1,16})-([0-9]{1,16})\.gz")


@dataclass(frozen=True, slots=True, kw_only=True)
class SpoolEntry:
    """A snapshot in the spool."""

    order: int
    epoch: str
    sequence: int
    base: int
    size: int

    @property
    def name(self) -> str:
        """The name of its file."""
        return f"{self.order:015d}-{self.epoch}-{self.sequence}-{self.base}.gz"

    @classmethod
    def of(cls, file: Path) -> Self | None:
        """Return the entry that a file is; None where it is none."""
        parts = _NAME.fullmatch(file.name)
        if parts is None:
            return None
        order, epoch, sequence, base = parts.groups()
        size = file.stat().st_size
        return cls(order=int(order), epoch=epoch, sequence=int(sequence), base=int(base), size=size)


class Spool:
    """A folder of snapshots.

    Args:
        folder: Ours alone; made where it is missing.
        most_bytes: What all of them together may take.
    """

    def __init__(self, folder: Path, most_bytes: int) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self._folder = folder
        self._most = most_bytes
        # Left by a process that died while it wrote.
        for half in folder.glob("*.half"):
            half.unlink()
        found = (SpoolEntry.of(file) for file in folder.iterdir())
        self._entries = sorted(filter(None, found), key=lambda entry: entry.order)

    @property
    def entries(self) -> Sequence[SpoolEntry]:
        """Oldest first."""
        return self._entries

    @property
    def size(self) -> int:
        """Bytes that are taken."""
        return sum(entry.size for entry in self._entries)

    def put(self, epoch: str, sequence: int, base: int, body: bytes) -> Sequence[SpoolEntry]:
        """Add a snapshot, and return what had to go for it.

        Raises:
            BadInput: it alone is larger than all of them may be.
            OSError: the disk is full, or cannot be written.
        """
        if len(body) > self._most:
            raise BadInput(f"a snapshot of {len(body)} bytes is larger than the whole spool")
        order = self._entries[-1].order + 1 if self._entries else 1
        entry = SpoolEntry(order=order, epoch=epoch, sequence=sequence, base=base, size=len(body))
        dropped = []
        while self._entries and self.size + entry.size > self._most:
            deltas = (each for each in self._entries if each.base)
            dropped.append(next(deltas, self._entries[0]))
            self.remove(dropped[-1])
        half = self._folder / f"{entry.name}.half"
        # A file with its final name is complete: the rename is atomic,
        # and half-written files are deleted at the next start.
        half.write_bytes(body)
        half.rename(self._folder / entry.name)
        self._entries.append(entry)
        return dropped

    def body(self, entry: SpoolEntry) -> bytes:
        """Return a snapshot as it is to be sent."""
        return (self._folder / entry.name).read_bytes()

    def remove(self, entry: SpoolEntry) -> None:
        """Forget a snapshot: the service has it, or nobody can take it."""
        self._entries.remove(entry)
        (self._folder / entry.name).unlink(missing_ok=True)
