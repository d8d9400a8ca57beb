"""Decisions: what waits for a yes, what it would do, and who said what?"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, date, datetime, time
from typing import Final

from plimsoll.domain.errors import NotFound
from plimsoll_console.hosted.asked import Asked
from plimsoll_console.pages import Page, Request, url
from plimsoll_service.domain.advice import awaits_instruction
from plimsoll_service.services.decisions import accept, cancel, dismiss
from plimsoll_service.services.recommendations import recommendations
from plimsoll_service.wire.advice import DismissRequest, Recommendation
from plimsoll_service.wire.documents import Malformed

PAGE: Final = 50
MOST_REASON_CHARACTERS: Final = 1000
STATES: Final = ("open", "accepted", "done", "dismissed", "refused", "withdrawn")
LEVELS: Final = {"open": "go", "accepted": "go", "done": "ok", "refused": "warn"}
WORDS: Final = {
    "consolidate-node": "Remove a node",
    "right-size": "Right-size",
    "instance-mix": "Other instances",
    "allow-spot": "Allow spot",
    "orphan-volume": "Delete a volume",
    "idle-load-balancer": "Delete a load balancer",
}


def cluster_decisions(request: Request, asked: Asked) -> Page:
    """List the recommendations of a cluster, the one that saves most first."""
    state = request.query.get("state", "open")
    found = recommendations(asked.data, asked.cluster)
    rows = [each for each in found.recommendations if state in {"all", each.state}]
    start = int(request.number("from") or 0)
    waiting = sum(each.state == "open" for each in found.recommendations)
    return Page(
        template="hosted/cluster_decisions.html.j2",
        given={
            "here": "decisions",
            "cluster": request.named["cluster"],
            "rows": rows[start : start + PAGE],
            "of": len(rows),
            "waiting": waiting,
            "left_out": found.left_out,
            "next": start + PAGE if start + PAGE < len(rows) else None,
            "state": state,
            "states": STATES,
            "words": WORDS,
            "levels": LEVELS,
        },
    )


def decision(request: Request, asked: Asked) -> Page:
    """Show one recommendation, and what may be decided about it."""
    each = _named(request, asked)
    return Page(
        template="hosted/decision.html.j2",
        given={
            "here": "decisions",
            "cluster": request.named["cluster"],
            "each": each,
            "what": WORDS[each.kind],
            "level": LEVELS.get(each.state, "idle"),
            "may_accept": asked.may_decide and each.state == "open",
            "may_cancel": asked.may_decide and _can_be_cancelled(each),
            "today": asked.now.date().isoformat(),
            "most": MOST_REASON_CHARACTERS,
        },
    )


def decide(request: Request, asked: Asked) -> Page:
    """Accept, dismiss or cancel the version of a recommendation that was seen.

    Raises:
        Malformed: the form is none of ours.
        NotFound, Forbidden, Throttled, Refused, Changed, Conflict: as the service says.
    """
    form, its = request.form, request.named["recommendation"]
    cluster, by, now = asked.cluster, asked.person, asked.now
    data = asked.reads.for_decision(by, cluster)
    seen = _version(form.get("version", ""))
    match form.get("action"):
        case "accept":
            if awaits_instruction(accept(data, cluster, its, by=by, seen=seen, now=now)):
                asked.ask_for_advice(cluster)
        case "dismiss":
            dismiss(data, cluster, its, _dismissal(form), by=by, seen=seen, now=now)
        case "cancel":
            cancel(data, cluster, its, by=by, seen=seen, now=now)
        case _:
            raise Malformed("the form says neither accept, dismiss nor cancel")
    return Page(to=url("c", request.named["cluster"], "decisions", its))


def _named(request: Request, asked: Asked) -> Recommendation:
    its = request.named["recommendation"]
    found = recommendations(asked.data, asked.cluster).recommendations
    each = next((each for each in found if each.id == its), None)
    if each is None:
        raise NotFound(f"There is no recommendation {its[:64]}: it may be withdrawn since.")
    return each


def _can_be_cancelled(each: Recommendation) -> bool:
    return each.state == "dismissed" or (each.state == "accepted" and not each.instruction)


def _version(text: str) -> int:
    if not (text.isascii() and text.isdecimal() and len(text) <= 9):  # noqa: PLR2004 - digits
        raise Malformed("the form names no version")
    return int(text)


def _dismissal(form: Mapping[str, str]) -> DismissRequest:
    """Return why a recommendation is dismissed, and until when: to the end of a day in UTC."""
    day, reason = form.get("until", ""), form.get("reason", "").strip()
    if not 0 < len(reason) <= MOST_REASON_CHARACTERS:
        raise Malformed(f"give a reason of at most {MOST_REASON_CHARACTERS} characters")
    try:
        until = datetime.combine(date.fromisoformat(day), time(23, 59, 59), UTC)
    except ValueError as error:
        raise Malformed(f"{day[:16]!r} is no day such as 2026-12-31") from error
    return DismissRequest(reason=reason, until=until)
