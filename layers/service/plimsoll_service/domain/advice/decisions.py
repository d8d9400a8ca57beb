"""What people decide about a recommendation: accept it, dismiss it, or cancel either.

A decision names the version that was seen. The same decision by the same person once more changes
nothing, so that a request may be repeated after a lost answer, whatever has become of it meanwhile.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from hashlib import sha256
from typing import Final

from msgspec.structs import replace

from plimsoll.domain.errors import Refused
from plimsoll_service.domain.advice.versions import refuse_changed
from plimsoll_service.wire.advice import Dismissal, DismissRequest, Recommendation
from plimsoll_service.wire.documents import Malformed

LONGEST_DISMISSAL: Final = timedelta(days=400)


@dataclass(frozen=True, slots=True, kw_only=True)
class Decider:
    """Who decides, and about what."""

    name: str
    subject: str
    """The id: another person may have the same name."""
    seen: int
    """The version that was seen."""
    now: datetime


def accepted(each: Recommendation, by: Decider) -> Recommendation:
    """Return a recommendation that somebody accepted.

    Raises:
        Changed: it has another version than the one that was seen.
        Refused: it is not open; the message names who decided.
    """
    mark = _mark("accept", by)
    if each.decided == mark:
        return each
    _refuse_decided(each)
    refuse_changed(each, by.seen)
    return replace(
        each,
        state="accepted",
        changed_at=by.now,
        note=f"accepted by {by.name}",
        accepted_by=by.name,
        accepted_at=by.now,
        decided=mark,
    )


def dismissed(each: Recommendation, by: Decider, asked: DismissRequest) -> Recommendation:
    """Return a recommendation that somebody dismissed until a time.

    Raises:
        Malformed: the time is past, or further away than LONGEST_DISMISSAL.
        Changed, Refused: as above.
    """
    said = sha256(f"{asked.until.timestamp()}\n{asked.reason}".encode()).hexdigest()
    mark = _mark("dismiss", by, said[:16])
    if each.decided == mark:
        return each
    if not by.now < asked.until <= by.now + LONGEST_DISMISSAL:
        raise Malformed(
            f"until is a time within {LONGEST_DISMISSAL.days} days from now - at `$.until`"
        )
    _refuse_decided(each)
    refuse_changed(each, by.seen)
    made = Dismissal(by=by.name, at=by.now, reason=asked.reason, until=asked.until)
    note = f"dismissed by {by.name} until {asked.until:%Y-%m-%d %H:%M %Z}: {asked.reason}"
    return replace(
        each, state="dismissed", changed_at=by.now, note=note, dismissed=made, decided=mark
    )


def cancelled(each: Recommendation, by: Decider) -> Recommendation:
    """Return a recommendation whose acceptance or dismissal somebody took back: it is open, and a new version.

    Raises:
        Changed: it has another version than the one that was seen.
        Refused: nothing is to be taken back, or an instruction was signed.
    """
    mark = _mark("cancel", by)
    if each.decided == mark:
        return each
    if each.state not in {"accepted", "dismissed"}:
        raise Refused(f"{each.id} is {each.state}: there is nothing to cancel")
    if each.state == "accepted" and each.instruction:
        raise Refused(
            f"instruction {each.instruction} was signed for {each.id} at "
            f"{each.changed_at:%H:%M:%S %Z}: it cannot be cancelled any more"
        )
    refuse_changed(each, by.seen)
    former = each.dismissed.by if each.dismissed else each.accepted_by or "somebody"
    note = f"{by.name} cancelled it; it was {each.state} by {former}"
    return replace(
        each,
        state="open",
        changed_at=by.now,
        version=each.version + 1,
        change=note,
        note=note,
        accepted_by="",
        accepted_at=None,
        dismissed=None,
        decided=mark,
    )


def undismissed(each: Recommendation, now: datetime) -> Recommendation:
    """Return a recommendation whose dismissal has ended: open again once an analysis finds it."""
    if each.state != "dismissed" or each.dismissed is None or now < each.dismissed.until:
        return each
    note = f"the dismissal by {each.dismissed.by} ended"
    return replace(each, state="withdrawn", changed_at=now, note=note, dismissed=None)


def _refuse_decided(each: Recommendation) -> None:
    match each.state:
        case "open":
            return
        case "accepted" | "done":
            when = f" at {each.accepted_at:%Y-%m-%d %H:%M:%S %Z}" if each.accepted_at else ""
            who = f"{each.accepted_by or 'somebody'} accepted it{when}"
            raise Refused(f"{each.id} is {each.state}: {who}")
        case "dismissed":
            raise Refused(f"{each.id} is {each.note}; cancel the dismissal first")
        case "refused" | "withdrawn":
            raise Refused(f"{each.id} is {each.state}: {each.note or 'it is not advised any more'}")


def _mark(action: str, by: Decider, more: str = "") -> str:
    return f"{action} {by.subject} {by.seen} {more}".rstrip()
