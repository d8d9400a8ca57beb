"""Our own canary: an event that touches nothing, and proves that notices arrive.

It goes the whole way of a notice: the bus, a rule, the queue, the function. A schedule sends one
every few minutes, with a word that only it is told, and an alarm rings when none arrives; `plimsoll
doctor` sends one with a word of its own, and waits until the function writes that word down.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import datetime
from typing import ClassVar, Final

from plimsoll.domain.notices.decision import Decision, nothing
from plimsoll.domain.notices.envelope import Envelope

CANARY_SOURCE: Final = "plimsoll.canary"
CANARY_DETAIL_TYPE: Final = "Plimsoll Canary"
_WORD: Final = re.compile(r"[0-9A-Za-z-]{1,64}")
"""It becomes part of a key, and whoever may put events may choose it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Canary:
    """Notices arrive."""

    kind: ClassVar[str] = "canary"

    id: str
    time: datetime
    """When it was put on the bus."""
    word: str | None = None
    """The schedule's, or what to write down; None: somebody else's, and nobody waits for it."""

    @property
    def decision(self) -> Decision:
        """Nothing: it arrived."""
        return nothing("a canary: notices arrive")


def parse(event: Envelope) -> tuple[Canary]:
    """Read the one notice of the event."""
    field = event.detail["word"]
    word = field.optional() and field.matching(_WORD, "letters, digits and -, 64 at most")
    return (Canary(id=event.id, time=event.time, word=word),)
