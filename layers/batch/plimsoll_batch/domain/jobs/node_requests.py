"""What node groups were asked for a gang, as it is kept on one of its Jobs.

The request is written before anybody is asked, so whoever dies in between leaves one without an answer,
and the next planner asks again under the same tokens: node groups count that once. A request that was
answered is left alone until its nodes are there, or cannot be expected any more; then the gang waits for
a while before it asks anew.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from enum import Enum, auto
from typing import Final, Self

from plimsoll.domain.fields import Field
from plimsoll.domain.node_groups import FIRST_SIGN_WITHIN, NODES_JOIN_WITHIN, NodeGroup
from plimsoll_batch.domain.jobs.job_annotations import (
    LONGEST_WHY_CHARACTERS,
    MOST_COUNTED,
    pause_after,
    record_in,
    text_of,
)

MOST_ASKS: Final = 50
"""Node groups, and zones of them, that one request names."""
MOST_REQUESTED_NODES: Final = 10_000
LONGEST_REQUEST_CHARACTERS: Final = 32 * 1024
"""Characters of the annotation."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Ask:
    """What one node group is asked for."""

    group: str
    """Its key."""
    desired: int
    """How many nodes it was to have before: with it the same ask counts once."""
    add: int
    zone: str | None = None
    """None: the group chooses."""
    token: str


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeRequest:
    """Nodes that were asked for, for one gang."""

    at: datetime
    expected: datetime
    asks: tuple[Ask, ...]
    number: int = 0
    """How many gangs were promised nodes before it by the same plan: later plans keep the order."""
    answered: bool = False
    """Whether all groups have answered."""
    attempts: int = 0
    """How often in a row it was given up."""
    not_before: datetime | None = None
    """It was given up, and nothing is asked for the gang earlier."""
    why: str = ""
    """Why it was given up."""
    refused: tuple[str, ...] = ()
    """Keys of the groups that refused: whoever asks next may not have heard it."""
    told: datetime | None = None
    """When they did."""

    @property
    def given_up(self) -> bool:
        """Whether nothing is expected of it any more."""
        return self.not_before is not None

    def awaited(self, now: datetime) -> bool:
        """Whether what comes is promised to its gang."""
        return not self.given_up and now < self.at + NODES_JOIN_WITHIN

    def gave_up(self, why: str, now: datetime, refused: Iterable[str] = ()) -> Self:
        """Return it as it is once nothing is expected of it any more."""
        attempts = self.attempts + 1
        return replace(
            self,
            attempts=attempts,
            not_before=now + pause_after(attempts),
            why=why[:LONGEST_WHY_CHARACTERS],
            refused=tuple(refused),
            told=now,
        )

    def repeated(self, groups: Mapping[str, NodeGroup]) -> Self:
        """Return it to be asked again: of no group more than its size by now and what is to be added.

        Who could forge a request would else choose a size.
        """
        asks = (
            replace(ask, desired=min(ask.desired, groups[ask.group].desired))
            if ask.group in groups
            else ask
            for ask in self.asks
        )
        return replace(self, asks=tuple(asks))

    @property
    def sizes(self) -> Counter[str]:
        """How many nodes each group is asked for."""
        counts: Counter[str] = Counter()
        for each in self.asks:
            counts[each.group] += each.add
        return counts

    def in_words(self) -> str:
        """Say what was asked for, and what became of it."""
        groups = ", ".join(f"{add} of group {group}" for group, add in self.sizes.items())
        said = f"nodes asked for: {groups}, asked at {self.at:%H:%M:%S}"
        if self.not_before is None:
            return f"{said}, expected by {self.expected:%H:%M:%S} UTC"
        return f"{said}, did not come: {self.why}; not asked again before {self.not_before:%H:%M:%S} UTC"

    def to_record(self) -> str:
        """Return it as an annotation."""
        return text_of(
            {
                "at": self.at.isoformat(),
                "expected": self.expected.isoformat(),
                "asks": [
                    {
                        "group": each.group,
                        "desired": each.desired,
                        "add": each.add,
                        "zone": each.zone,
                        "token": each.token,
                    }
                    for each in self.asks
                ],
                "number": self.number,
                "answered": self.answered,
                "attempts": self.attempts,
                "notBefore": None if self.not_before is None else self.not_before.isoformat(),
                "why": self.why,
                "refused": list(self.refused),
                "told": None if self.told is None else self.told.isoformat(),
            }
        )

    @classmethod
    def from_record(cls, text: str) -> Self:
        """Read an annotation.

        Raises:
            BadInput: it is no such record; the message names the field.
        """
        found = record_in(text, limit=LONGEST_REQUEST_CHARACTERS)
        return cls(
            at=found["at"].time(),
            expected=found["expected"].time(),
            asks=tuple(_ask(each) for each in found["asks"].each(MOST_ASKS)),
            number=found["number"].whole(0, MOST_COUNTED, default=0),
            answered=found["answered"].flag(),
            attempts=found["attempts"].whole(0, MOST_COUNTED, default=0),
            not_before=found["notBefore"].optional_time(),
            why=found["why"].optional(limit=LONGEST_WHY_CHARACTERS) or "",
            refused=tuple(each.required() for each in found["refused"].each(MOST_ASKS)),
            told=found["told"].optional_time(),
        )


class Turn(Enum):
    """What becomes of a gang that has quota, and whose nodes may come."""

    WAIT = auto()
    """They are on the way, or may be seen in a moment."""
    ASK = auto()
    NOT_YET = auto()
    """It gave up a moment ago."""
    GIVE_UP = auto()


def turn_of(request: NodeRequest | None, now: datetime, *, lacks: bool, joining: bool) -> Turn:
    """Decide whether nodes are asked for a gang now.

    Args:
        request: what was asked for it since it waits.
        now: the present.
        lacks: there are too few nodes on the way for it.
        joining: a node joined a moment ago that may not have all it will have.
    """
    if request is None:
        return Turn.ASK if lacks else Turn.WAIT
    if request.not_before is not None:
        if not lacks:
            return Turn.WAIT
        return Turn.ASK if request.not_before <= now else Turn.NOT_YET
    if not request.awaited(now):
        return Turn.GIVE_UP
    seen_soon = not request.answered or now < request.at + FIRST_SIGN_WITHIN or joining
    return Turn.WAIT if seen_soon or not lacks else Turn.GIVE_UP


def _ask(found: Field) -> Ask:
    return Ask(
        group=found["group"].required(),
        desired=found["desired"].whole(0, MOST_COUNTED),
        add=found["add"].whole(1, MOST_REQUESTED_NODES),
        zone=found["zone"].optional(),
        token=found["token"].required(),
    )
