"""What goes in must come out: the checker of a queue, in Jepsen's sense.

https://github.com/jepsen-io/jepsen/blob/main/jepsen/src/jepsen/checker.clj (total-queue)
"""

from __future__ import annotations

from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from typing import override


@dataclass(frozen=True, slots=True)
class TotalQueue[T]:
    """What was sent, what of it was acknowledged, and what was found in the end."""

    attempted: AbstractSet[T]
    acknowledged: AbstractSet[T]
    found: AbstractSet[T]

    @property
    def lost(self) -> AbstractSet[T]:
        """Acknowledged, and nowhere to be found."""
        return self.acknowledged - self.found

    @property
    def unexpected(self) -> AbstractSet[T]:
        """Found, and never sent."""
        return self.found - self.attempted

    @property
    def recovered(self) -> AbstractSet[T]:
        """Found, although nobody acknowledged it."""
        return (self.attempted - self.acknowledged) & self.found

    @override
    def __str__(self) -> str:
        """Return the counts, in one line."""
        counts = {
            "attempted": self.attempted,
            "acknowledged": self.acknowledged,
            "found": self.found,
            "lost": self.lost,
            "unexpected": self.unexpected,
            "recovered": self.recovered,
        }
        return "total-queue: " + ", ".join(f"{len(v)} {name}" for name, v in counts.items())
