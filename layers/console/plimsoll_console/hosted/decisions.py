"""Decisions: what waits for a yes, what it would do, and who said what?"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, date, datetime, time
from typing import Final

from plimsoll.domain.errors import NotFound
from plimsoll_console.hosted.asked import ALL, Asked, Listed, listed
from plimsoll_console.pages import Page, Request, url
from plimsoll_console.views.words import counted
from plimsoll_service.domain.advice import awaits_instruction
from plimsoll_service.services.decisions import accept, cancel, dismiss
from plimsoll_service.services.kept_advice import read_recommendations
from plimsoll_service.services.recommendation_pages import (
    DECISION,
    DECISION_FILTERS,
    RECOMMENDATION,
    RECOMMENDATION_FILTERS,
    recommendation_page,
)
from plimsoll_service.services.recommendation_pages import decisions as tenant_decisions
from plimsoll_service.wire.advice import DismissRequest, Recommendation
from plimsoll_service.wire.documents import Malformed

MOST_REASON_CHARACTERS: Final = 1000
LEVELS: Final = {"open": "go", "accepted": "go", "done": "ok", "refused": "warn"}
WORDS: Final = {
    "consolidate-node": "Remove a node",
    "right-size": "Right-size",
    "instance-mix": "Other instances",
    "allow-spot": "Allow spot",
    "orphan-volume": "Delete a volume",
    "idle-load-balancer": "Delete a load balancer",
}


def decisions(request: Request, asked: Asked) -> Page:
    """List the recommendations of all clusters that the person may see.

    Raises:
        Malformed: the query names no such page or filter.
    """
    wanted = listed(request, DECISION, DECISION_FILTERS, state="open")
    found = tenant_decisions(asked.data, wanted.page, asked.now, asked.sees)
    clusters = counted(found.clusters, "cluster", "clusters")
    return _list(
        wanted,
        title=f"{_waiting(found.waiting)} in {clusters}." if found.waiting else _waiting(0) + ".",
        rows=[(each.cluster.name, each.each) for each in found.items],
        next=found.next,
    )


def cluster_decisions(request: Request, asked: Asked) -> Page:
    """List the recommendations of a cluster, the one that saves most first.

    Raises:
        Malformed: the query names no such page or filter.
    """
    name = request.named["cluster"]
    wanted = listed(request, RECOMMENDATION, RECOMMENDATION_FILTERS, state="open")
    found = recommendation_page(asked.data, asked.cluster, wanted.page, asked.now)
    many, state = sum(found.counts.values()), wanted.page.filters.get("state", ALL)
    matching = counted(many, "recommendation matches", "recommendations match")
    return _list(
        wanted,
        title=f"{_waiting(many) if state == 'open' else matching}.",
        cluster=name,
        rows=[(name, each) for each in found.items],
        next=found.next,
        left_out=found.left_out,
    )


def _waiting(many: int) -> str:
    words = counted(many, "recommendation waits", "recommendations wait")
    return f"{words} for a decision" if many else "No recommendation waits for a decision"


def _list(wanted: Listed, **given: object) -> Page:
    return Page(
        template="hosted/decisions.html.j2",
        given={
            **wanted.given,
            "here": "decisions",
            "words": WORDS,
            "levels": LEVELS,
            "left_out": 0,
            **given,
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
        NotFound, Forbidden, Throttled, Refused, Changed, Temporary: as the service says.
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
    kept, _ = read_recommendations(asked.data, asked.cluster)
    each = next((each for each in kept.recommendations if each.id == its), None)
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
