"""Our own canary: an event that touches nothing, and proves that notices arrive.

It goes the whole way of a notice: the bus, a rule, the queue, the function. A schedule sends one
every few minutes, and an alarm rings when none arrives; `plimsoll doctor` sends one with a name of its
own, and waits until the function writes that name down. Each carries a word that is signed by the secret
of its stack, because anybody who may put events could hide a missing one, or fill the reports.
"""

from __future__ import annotations

import hmac
import re
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import ClassVar, Final

from plimsoll.domain.notices.decision import Decision, nothing
from plimsoll.domain.notices.envelope import Envelope

CANARY_SOURCE: Final = "plimsoll.canary"
CANARY_DETAIL_TYPE: Final = "Plimsoll Canary"
SCHEDULED_CANARY: Final = "schedule"
"""The name of the schedule's canaries. They are counted, and nobody waits for them."""
GOOD_FOR: Final = timedelta(minutes=15)
"""How far from now a word may have been signed, as the clocks of people differ."""
_WORD: Final = re.compile(r"[0-9A-Za-z-]{1,160}")
_SIGNED: Final = re.compile(r"([0-9A-Za-z-]{1,64})-([0-9]{1,12})-([0-9a-f]{64})")
"""Name, Unix time in seconds and signature. The name becomes part of a key."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Canary:
    """Notices arrive."""

    kind: ClassVar[str] = "canary"

    id: str
    time: datetime
    """When it was put on the bus."""
    word: str | None = None

    @property
    def decision(self) -> Decision:
        """Nothing: it arrived."""
        return nothing("a canary: notices arrive")

    def name(self, key: str, now: datetime) -> str | None:
        """Return the name in its word; None: another key signed it, or it was signed too long ago."""
        found = _SIGNED.fullmatch(self.word or "")
        if found is None:
            return None
        name, at, signature = found.groups()
        ours = hmac.compare_digest(signature, _signature(f"{name}-{at}", key))
        return name if ours and abs(now.timestamp() - int(at)) <= GOOD_FOR.total_seconds() else None


def canary_word(name: str, key: str, now: datetime) -> str:
    """Return a signed word.

    Args:
        name: of at most 64 letters, digits and -.
        key: the secret of the stack.
        now: the time.
    """
    signed = f"{name}-{int(now.timestamp())}"
    return f"{signed}-{_signature(signed, key)}"


def parse(event: Envelope) -> tuple[Canary]:
    """Read the one notice of the event."""
    field = event.detail["word"]
    word = field.optional() and field.matching(_WORD, "letters, digits and -, 160 at most")
    return (Canary(id=event.id, time=event.time, word=word),)


def _signature(text: str, key: str) -> str:
    return hmac.digest(key.encode(), text.encode(), "sha256").hex()
