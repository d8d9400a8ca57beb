"""All that is known about one interrupted instance.

An interruption is a set of notices and a few marks, and everything else is read off them: so it
does not matter in which order they came, nor how often. `join` is commutative, associative and
idempotent, and one notice is merged by joining it.

Its identity is the instance **and the time it was launched**: an instance that was stopped or
hibernated is reborn under its id, on its old Node object, with what was written on it.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from functools import cached_property
from typing import Final, Literal, get_args

from plimsoll.domain.notices import GONE, HealthScheduledChange, InstanceNotice, StateChange

MARGIN: Final = timedelta(seconds=2)
"""Taken off the deadline once, for clocks that differ and calls on their way."""

NOTICES_PER_KIND: Final = 8
"""How many notices of a kind are kept: the newest. A record must fit on a Node, whoever writes to
the bus. (That forgetting the oldest first is what lets it go with any order of arrival.)"""

URGENCY: Final[tuple[str, ...]] = tuple(kind.kind for kind in get_args(InstanceNotice.__value__))
"""The kinds of notice, the most urgent first. A kind that this version does not know comes after all."""

ADVICE: Final = frozenset({"health-scheduled-change", "rebalance-recommendation"})
"""The kinds of notice that leave time, if ever they come true."""

SCALE_DOWN: Final = "scale-down"
"""No notice of AWS: a node that we added is empty again. See `plimsoll.domain.drain.added_nodes`."""

NEAR: Final = timedelta(minutes=10)
"""A deadline nearer than this presses. Maintenance in two weeks does not."""


def is_near(deadline: datetime | None, now: datetime) -> bool:
    """Whether a deadline presses and is still to come."""
    return deadline is not None and now < deadline < now + NEAR


CLOSED: Final = "closed"

type Phase = Literal["open", "empty", "gone", "closed"]

_BEFORE: Final = datetime.min.replace(tzinfo=UTC)
NEVER: Final = datetime.max.replace(tzinfo=UTC)
"""In the place of a deadline that there is not, where deadlines are compared."""


def urgency(kind: str) -> int:
    """Rank a kind of notice: the lower, the more urgent."""
    return URGENCY.index(kind) if kind in URGENCY else len(URGENCY)


@dataclass(frozen=True, slots=True, kw_only=True)
class NoticeRecord:
    """What an interruption keeps of a notice."""

    kind: str
    time: datetime
    id: str
    ends: datetime | None = None
    """The hard end that the notice names or implies, margin not taken off."""
    about: str | None = None
    """What a later notice may change or call off: the ARN of a Health event, a lifecycle hook."""
    state: str | None = None
    """The EC2 state of a state change; `closed` for a Health event that is over or called off."""
    guessed: bool = False
    """Whether `ends` is only assumed: such a deadline cuts nobody short and overrules nothing."""
    heartbeat: datetime | None = None
    """When the lifecycle hook was last told that we are at work."""
    traceparent: str | None = field(default=None, compare=False)
    """Of the span that handled the notice last. A copy that is traced anew is no news, and writes nothing."""

    @property
    def order(self) -> tuple[datetime, str, bool, datetime, datetime, str, str, str]:
        """By time, then by all the rest, so that no two different records are equal."""
        return (
            self.time,
            self.id,
            not self.guessed,
            self.heartbeat or _BEFORE,
            self.ends or NEVER,
            self.kind,
            self.about or "",
            self.state or "",
        )


@dataclass(frozen=True, kw_only=True)  # without slots: each plan asks dozens of times what stands
class Interruption:
    """One life of one instance, coming to its end."""

    instance: str
    launched: datetime | None
    """In whole seconds, from EC2 and nowhere else; None while it is not known."""
    node: str
    notices: tuple[NoticeRecord, ...]
    """At least one, the oldest first; no two of one kind and id."""
    cordoned: datetime | None = None
    emptied: datetime | None = None
    gone: datetime | None = None
    """When the first of each happened: cordoned, empty, instance gone."""
    closed: datetime | None = None
    """When it was last finished with. A later notice opens it again."""
    unschedulable_before: bool = False
    """Whether somebody else had cordoned the node before we did: then it stays cordoned after us."""

    def __post_init__(self) -> None:
        if not self.notices:
            raise ValueError(f"no notice says that {self.instance} is interrupted")

    @property
    def identity(self) -> str:
        """Name this life of the instance, for reports and people."""
        life = f"{self.launched:%Y-%m-%dT%H:%M:%SZ}" if self.launched else "unknown"
        return f"{self.instance}@{life}"

    @cached_property
    def standing(self) -> tuple[NoticeRecord, ...]:
        """The notices that count: of those about one thing only the newest, if not closed."""
        newest = {
            (notice.kind, notice.about): notice for notice in self.notices if notice.about
        }  # the oldest come first, so the newest is what stays
        return tuple(
            notice
            for notice in self.notices
            if not notice.about
            or (newest[notice.kind, notice.about] is notice and notice.state != CLOSED)
        )

    @property
    def withdrawn(self) -> bool:
        """Say whether everything that was announced has been called off: the node may stay."""
        return not self.standing

    @cached_property
    def kind(self) -> str:
        """The most urgent kind of notice, and the value of the node's taint."""
        return min((n.kind for n in self.standing or self.notices), key=lambda k: (urgency(k), k))

    @property
    def taint(self) -> str:
        """The value of the taint on the node."""
        return self.kind

    @property
    def noticed(self) -> datetime:
        """When the first notice was given."""
        return self.notices[0].time

    @cached_property
    def deadline(self) -> datetime | None:
        """The earliest hard end less `MARGIN`; None when nothing says when it goes."""
        ends = [notice.ends for notice in self.standing if notice.ends]
        return min(ends) - MARGIN if ends else None

    @property
    def deadline_told(self) -> datetime | None:
        """When the first notice told of the deadline; None while there is none."""
        deadline = self.deadline
        times = (n.time for n in self.standing if n.ends and n.ends - MARGIN == deadline)
        return min(times, default=None)

    def on_advice(self, now: datetime) -> bool:
        """Whether only advice says that it goes, and no deadline is near."""
        near = self.deadline is not None and self.deadline - now < NEAR
        return not near and all(n.kind in {*ADVICE, SCALE_DOWN} for n in self.standing)

    @property
    def guessed(self) -> bool:
        """Whether the deadline is only assumed."""
        deadline = self.deadline
        return deadline is not None and all(
            n.guessed for n in self.standing if n.ends and n.ends - MARGIN == deadline
        )

    @property
    def exact(self) -> bool:
        """Whether the instance goes at its deadline.

        Not if that is assumed or the date of a scheduled change, which may be postponed; nor once a
        state change told that its end has begun: how long that takes, nothing says.
        """
        deadline = self.deadline
        return not any(n.kind == StateChange.kind for n in self.standing) and any(
            not n.guessed and n.kind != HealthScheduledChange.kind
            for n in self.standing
            if n.ends and n.ends - MARGIN == deadline
        )

    @property
    def phase(self) -> Phase:
        """How far it is; closed only until a later notice."""
        # Before `gone`: closed is the last phase.
        if self.closed and self.closed >= self.notices[-1].time:
            return "closed"
        if self.gone:
            return "gone"
        return "empty" if self.emptied else "open"


def join(a: Interruption, b: Interruption) -> Interruption:
    """Put together what two records know about one life of one instance.

    Raises:
        ValueError: They are about two instances, or two lives of one.
    """
    if a.instance != b.instance or (a.launched and b.launched and a.launched != b.launched):
        raise ValueError(
            f"{a.instance} launched {a.launched} is not {b.instance} launched {b.launched}"
        )
    return Interruption(
        instance=a.instance,
        launched=a.launched or b.launched,
        node=max(a.node, b.node),
        notices=kept((*a.notices, *b.notices)),
        cordoned=first(a.cordoned, b.cordoned),
        emptied=first(a.emptied, b.emptied),
        gone=first(a.gone, b.gone),
        closed=last(a.closed, b.closed),
        unschedulable_before=a.unschedulable_before or b.unschedulable_before,
    )


def marked(
    interruption: Interruption,
    *,
    cordoned: datetime | None = None,
    emptied: datetime | None = None,
    gone: datetime | None = None,
    closed: datetime | None = None,
) -> Interruption:
    """Note what was reached. Marking again changes nothing, except that it may be closed later."""
    return replace(
        interruption,
        cordoned=first(interruption.cordoned, cordoned),
        emptied=first(interruption.emptied, emptied),
        gone=first(interruption.gone, gone),
        closed=last(interruption.closed, closed),
    )


def kept(notices: Iterable[NoticeRecord]) -> tuple[NoticeRecord, ...]:
    """Order notices by time, drop copies (the newest stays), and bound each kind."""
    # Sorted, so that the copy that stays does not depend on the order of arrival.
    distinct = {(n.kind, n.id): n for n in sorted(notices, key=lambda n: n.order)}
    by_kind: dict[str, list[NoticeRecord]] = {}
    for notice in sorted(distinct.values(), key=lambda n: n.order):
        by_kind.setdefault(notice.kind, []).append(notice)
    return tuple(
        sorted(
            (n for kind in by_kind.values() for n in kind[-NOTICES_PER_KIND:]),
            key=lambda n: n.order,
        )
    )


def first_gone(notices: Iterable[NoticeRecord]) -> datetime | None:
    """Find when the first state change said that the instance is gone."""
    return min(
        (n.time for n in notices if n.kind == "state-change" and n.state in GONE), default=None
    )


def first(*times: datetime | None) -> datetime | None:
    """Return the earliest of the times that are known."""
    return min((time for time in times if time), default=None)


def last(*times: datetime | None) -> datetime | None:
    """Return the latest of the times that are known."""
    return max((time for time in times if time), default=None)
