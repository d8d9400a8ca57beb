"""The fleet of a tenant: does a storm run, what waits for a decision, and what could be saved?"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

from plimsoll.domain.errors import NotFound, PlimsollError
from plimsoll_console.hosted.asked import Asked
from plimsoll_console.pages import Page, Request
from plimsoll_console.sources import Source
from plimsoll_console.views.storm import task_words, verdict
from plimsoll_console.views.words import ago, counted
from plimsoll_service.domain.access import PersonRole
from plimsoll_service.services.clusters import known_clusters
from plimsoll_service.services.history import newest_said
from plimsoll_service.services.recommendations import SAVINGS, recommendations
from plimsoll_service.services.stored import stored
from plimsoll_service.wire.advice import Advice

PAGE: Final = 50
SILENT: Final = timedelta(minutes=10)
"""For how long an agent, which sends a snapshot each minute, may send none."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FleetRow:
    """One cluster. None: nobody told."""

    name: str
    word: str
    level: str
    says: str
    """Of a storm that runs: its verdict, and what the person must do."""
    nodes: int | None
    spot: int | None
    monthly: float | None
    """Dollars that its nodes cost."""
    saved: float | None
    """Dollars of that which other nodes for the same pods would save."""
    waiting: int
    """Recommendations that wait for a decision."""
    seen: str


def fleet(request: Request, asked: Asked) -> Page:
    """List the clusters that the person may see, by name."""
    wanted = request.query.get("q", "")[:253].lower()
    ours = [
        (name, agent)
        for agent, name in known_clusters(asked.data)
        if asked.person.may(PersonRole.VIEWER, agent)
    ]
    chosen = sorted(each for each in ours if wanted in each[0])
    start = int(request.number("from") or 0)
    rows = [_row(name, agent, asked) for name, agent in chosen[start : start + PAGE]]
    return Page(
        template="hosted/fleet.html.j2",
        given={
            "here": "fleet",
            "title": _title(rows, len(ours)),
            "rows": rows,
            "storms": [row for row in rows if row.says],
            "of": len(ours),
            "chosen": len(chosen),
            "next": start + PAGE if start + PAGE < len(chosen) else None,
            "q": wanted,
            "with_storms": asked.stack is not None,
        },
    )


def cluster(request: Request, asked: Asked) -> Page:
    """Show one cluster: its nodes by pool, what they cost, and where to look next."""
    name = request.named["cluster"]
    row = _row(name, asked.cluster, asked)
    try:
        pools = asked.reads.pools(asked.person, asked.cluster)
    except NotFound:
        pools = None
    advice = stored(asked.data, asked.cluster, SAVINGS, Advice)[0]
    return Page(
        template="hosted/cluster.html.j2",
        given={
            "here": "cluster",
            "cluster": name,
            "row": row,
            "pools": pools,
            "advice": advice,
            "agent": asked.cluster,
        },
    )


def of_storms(
    view: Callable[[Request, Source], Page], here: str
) -> Callable[[Request, Asked], Page]:
    """Return a screen of the local console for a cluster that an interruption stack tells of."""

    def shown(request: Request, asked: Asked) -> Page:
        name = request.named["cluster"]
        if name in asked.storms.clusters():
            return view(request, asked.storms)
        return Page(
            template="hosted/storms_off.html.j2",
            given={
                "here": here,
                "cluster": name,
                "agent": asked.cluster,
                "configured": asked.stack is not None,
            },
        )

    return shown


def _row(name: str, agent: str, asked: Asked) -> FleetRow:
    said = newest_said(asked.data, agent)
    advice = stored(asked.data, agent, SAVINGS, Advice)[0]
    kept = recommendations(asked.data, agent).recommendations
    word, level, says = _state(agent, None if said is None else said.received_at, asked)
    today = advice.today if advice else None
    return FleetRow(
        name=name,
        word=word,
        level=level,
        says=says,
        nodes=today.nodes if today else None,
        spot=today.spot if today else None,
        monthly=today.monthly if today else None,
        saved=max(0.0, today.monthly - advice.optimised.monthly) if today and advice else None,
        waiting=sum(each.state == "open" for each in kept),
        seen="never" if said is None else ago(said.taken_at, asked.now),
    )


def _state(agent: str, received: datetime | None, asked: Asked) -> tuple[str, str, str]:
    try:
        registered = asked.stack.registered(agent, asked.now) if asked.stack else None
        frames = (
            asked.stack.storm(registered, None, asked.now) if asked.stack and registered else ()
        )
    except PlimsollError:  # the screen of its storm says why
        return "storms not read", "bad", ""
    if frames and not frames[-1].over and not _is_late(frames[-1].next_by, asked.now):
        words, level = verdict(frames[-1], ended=False)
        heading, more = task_words(frames[-1], frames[-1].seconds, ended=False)
        says = f"{words} {heading} {' '.join(frames[-1].task.acts) or more}"
        return "storm now", "bad" if level == "bad" else "warn", says
    if received is None:
        return "no snapshot yet", "idle", ""
    if asked.now - received > SILENT:
        return "agent silent", "warn", ""
    return "no storm" if registered else "in sight", "ok", ""


def _is_late(next_by: datetime | None, now: datetime) -> bool:
    return next_by is not None and next_by < now


def _title(rows: list[FleetRow], of: int) -> str:
    if not of:
        return "No cluster is enrolled yet."
    storms = sum(bool(row.says) for row in rows)
    waiting = sum(row.waiting for row in rows)
    return " ".join(
        (
            f"{counted(storms, 'storm runs', 'storms run')}." if storms else "No storm runs.",
            f"{counted(waiting, 'recommendation waits', 'recommendations wait')} for a decision.",
        )
    )
