"""The batch queues of a cluster: who uses which quota, and why does a gang wait?"""

from __future__ import annotations

from typing import Final

from plimsoll_console.pages import Page, Request, missing, url
from plimsoll_console.queues import GangLine
from plimsoll_console.sources import ClusterState, Source
from plimsoll_console.views.fleet import is_old
from plimsoll_console.views.words import ago, counted

PAGE: Final = 50
"""Gangs on one page."""
MOST_QUEUES: Final = 100
"""Queues that are shown."""
LEVELS: Final = {"running": "ok", "starting": "go", "stopping": "warn", "waiting": "idle"}
"""State of a gang -> how its word looks."""


def queues(request: Request, source: Source) -> Page:
    """Show each queue with its quota and use, and the gangs with what they wait for."""
    state = source.state(request.named["cluster"])
    if state is None:
        return missing(f"There is no cluster {request.named['cluster']}.")
    wanted = request.query.get("q", "")[:253]
    queue = request.query.get("queue", "")[:253]
    start = int(request.number("from") or 0)
    seen = state.queues
    found = [] if seen is None else [each for each in seen.gangs if _is_asked(each, wanted, queue)]
    end = start + PAGE
    return Page(
        template="queues.html.j2",
        given={
            "here": "queues",
            "cluster": state.name,
            "state": state,
            "title": _title(state, source),
            "found": seen,
            "queues": [] if seen is None else seen.queues[:MOST_QUEUES],
            "gangs": [(gang, ago(gang.since, source.now())) for gang in found[start:end]],
            "chosen": len(found),
            "next": url("c", state.name, "queues", q=wanted, queue=queue, **{"from": end})
            if end < len(found)
            else None,
            "q": wanted,
            "queue": queue,
            "levels": LEVELS,
            "old": is_old(state, source),
            "seen": ago(state.at if seen is None else seen.at, source.now()),
        },
    )


def _is_asked(gang: GangLine, wanted: str, queue: str) -> bool:
    return wanted.lower() in gang.name.lower() and queue in {"", gang.queue}


def _title(state: ClusterState, source: Source) -> str:
    seen = state.queues
    if not state.known:
        return "The cluster is being read."
    if seen is None:
        return f"{state.name} has no batch queues."
    if seen.error:
        return "The batch queues cannot be read."
    if not seen.waiting:
        return "No gang waits."
    first = min(
        (gang.since for gang in seen.gangs if gang.state == "waiting"), default=source.now()
    )
    since = ago(first, source.now()).removesuffix(" ago")
    return f"{counted(seen.waiting, 'gang waits', 'gangs wait')}, the first for {since}."
