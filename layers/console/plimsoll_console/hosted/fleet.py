"""The fleet of a tenant: does a storm run, what waits for a decision, and what could be saved?"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime

from plimsoll.domain.errors import NotFound, PlimsollError
from plimsoll_console.hosted.asked import Asked, listed
from plimsoll_console.pages import Page, Request
from plimsoll_console.sources import Source
from plimsoll_console.views.storm import task_words, verdict
from plimsoll_console.views.words import ago, counted
from plimsoll_service.services.cluster_rows import CLUSTER, cluster_row
from plimsoll_service.services.clusters import CLUSTER_FILTERS, clusters
from plimsoll_service.services.kept_advice import SAVINGS
from plimsoll_service.services.stored import stored
from plimsoll_service.wire.advice import Advice
from plimsoll_service.wire.clusters import ClusterCounts, ClusterRow


@dataclass(frozen=True, slots=True, kw_only=True)
class FleetRow:
    """One cluster."""

    told: ClusterRow
    word: str
    level: str
    says: str
    """Of a storm that runs: its verdict, and what the person must do."""
    seen: str


def fleet(request: Request, asked: Asked) -> Page:
    """List the clusters that the person may see, by name: one query.

    Raises:
        Malformed: the query names no such page or filter.
    """
    wanted = listed(request, CLUSTER, CLUSTER_FILTERS)
    found = clusters(asked.data, wanted.page, asked.now, asked.sees)
    # A storm is more than a query: it is read only where the newest snapshot tells of interrupted nodes.
    rows = [_row(each, asked, reads_storm=_interrupted(each) > 0) for each in found.items]
    return Page(
        template="hosted/fleet.html.j2",
        given={
            **wanted.given,
            "here": "fleet",
            "title": _title(found.counts),
            "counts": found.counts,
            "rows": rows,
            "storms": [row for row in rows if row.says],
            "next": found.next,
        },
    )


def cluster(request: Request, asked: Asked) -> Page:
    """Show one cluster: its nodes by pool, what they cost, and where to look next."""
    name = request.named["cluster"]
    told = cluster_row(asked.data, asked.cluster, asked.now)
    if told is None:  # removed since the session's cluster was looked up
        raise NotFound(f"there is no cluster {name[:64]}")
    row = _row(told, asked, reads_storm=True)
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


def _row(told: ClusterRow, asked: Asked, *, reads_storm: bool) -> FleetRow:
    word, level, says = _state(told, asked, reads_storm=reads_storm)
    seen = "never" if told.seen is None else ago(told.seen.taken_at, asked.now)
    return FleetRow(told=told, word=word, level=level, says=says, seen=seen)


def _state(told: ClusterRow, asked: Asked, *, reads_storm: bool) -> tuple[str, str, str]:
    try:
        registered = asked.stack.registered(told.id, asked.now) if asked.stack else None
        frames = (
            asked.stack.storm(registered, None, asked.now)
            if asked.stack and registered and reads_storm
            else ()
        )
    except PlimsollError:  # the screen of its storm says why
        return "storms not read", "bad", ""
    if frames and not frames[-1].over and not _is_late(frames[-1].next_by, asked.now):
        words, level = verdict(frames[-1], ended=False)
        heading, more = task_words(frames[-1], frames[-1].seconds, ended=False)
        says = f"{words} {heading} {' '.join(frames[-1].task.acts) or more}"
        return "storm now", "bad" if level == "bad" else "warn", says
    if told.seen is None:
        return "no snapshot yet", "idle", ""
    if told.silent:
        return "agent silent", "warn", ""
    if nodes := _interrupted(told):
        return counted(nodes, "node goes", "nodes go"), "warn", ""
    return "no storm" if registered else "in sight", "ok", ""


def _interrupted(told: ClusterRow) -> int:
    return told.seen.open_interruptions if told.seen else 0


def _is_late(next_by: datetime | None, now: datetime) -> bool:
    return next_by is not None and next_by < now


def _title(counts: ClusterCounts) -> str:
    if not counts.clusters:
        return "No cluster is shown."
    interrupted = counted(counts.interrupted, "cluster loses nodes", "clusters lose nodes")
    waiting = counted(counts.decisions, "recommendation waits", "recommendations wait")
    return (
        f"{interrupted if counts.interrupted else 'No cluster loses nodes'}. "
        f"{waiting} for a decision."
    )
