"""The fleet: is every cluster above its line, and does a storm run?"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from plimsoll.domain.spot import SPOT
from plimsoll_console.loads import Load
from plimsoll_console.pages import Page, Request
from plimsoll_console.sources import ClusterState, Source
from plimsoll_console.views.storm import task_words, verdict
from plimsoll_console.views.words import ago, counted

PAGE = 50


@dataclass(frozen=True, slots=True, kw_only=True)
class FleetRow:
    """One cluster."""

    name: str
    word: str
    level: str
    worst: Load | None
    nodes: int | None
    """None: nobody told, as of the clusters of a stack."""
    spot: int
    asked: int
    """Workloads with an on-demand floor, and how many of the floors are met."""
    met: int
    storm: str
    seen: str
    says: str = ""
    """Of a storm that runs: its verdict, and what the person must do."""


def fleet(request: Request, source: Source) -> Page:
    """List the clusters of the source, those that need a look first."""
    wanted, state = request.query.get("q", "")[:253], request.query.get("state", "")
    rows = [_row(found, source) for name in source.clusters() if (found := source.state(name))]
    rows.sort(key=lambda row: (_ORDER.get(row.level, 0), row.name))
    chosen = [
        row
        for row in rows
        if wanted.lower() in row.name.lower() and (not state or row.level == state)
    ]
    start = int(request.number("from") or 0)
    shown = chosen[start : start + PAGE]
    return Page(
        template="fleet.html.j2",
        given={
            "here": "fleet",
            "verdict": _verdict(rows),
            "rows": shown,
            "of": len(rows),
            "chosen": len(chosen),
            "next": start + PAGE if start + PAGE < len(chosen) else None,
            "storms": [row for row in rows if row.says],
            "q": wanted,
            "state": state,
            "source": source,
        },
    )


_ORDER = {"bad": 0, "warn": 1, "idle": 2, "ok": 3}


def is_old(state: ClusterState, source: Source) -> bool:
    """Whether what is known of a cluster is old."""
    age = (source.now() - state.at).total_seconds()
    return not source.ended and age > state.stale_after


def _row(state: ClusterState, source: Source) -> FleetRow:
    word, level, says = _state_word(state, source)
    nodes = state.seen.nodes if state.seen else None
    asked = [load for load in state.loads if load.line is not None]
    return FleetRow(
        name=state.name,
        word=word,
        level=level,
        worst=state.loads[0] if state.loads else None,
        nodes=None if nodes is None else len(nodes),
        spot=sum(node.capacity == SPOT for node in nodes or ()),
        asked=len(asked),
        met=sum(load.met for load in asked),
        storm=_storm_words(state, source),
        seen=ago(state.at, source.now()),
        says=says,
    )


def _state_word(state: ClusterState, source: Source) -> tuple[str, str, str]:
    latest = state.latest
    if state.error:
        return "not read", "bad", ""
    if not state.known:
        return "being read", "idle", ""
    if is_old(state, source):
        return "not seen lately", "warn", ""
    if latest is not None and not latest.over and not source.ended:
        words, level = verdict(latest, ended=False)
        heading, more = task_words(latest, latest.seconds, ended=False)
        says = f"{words} {heading} {' '.join(latest.task.acts) or more}"
        return "storm now", "bad" if level == "bad" else "warn", says
    if any(load.line is not None and not load.met for load in state.loads):
        return "floor missed", "bad", ""
    # Nothing is in order by itself: without a floor nobody said what order is. A stack tells nothing of floors.
    asked = any(load.line is not None for load in state.loads)
    return ("in order", "ok", "") if asked else ("no storm", "idle", "")


def _storm_words(state: ClusterState, source: Source) -> str:
    latest = state.latest
    if latest is None:
        return "none seen"
    if not latest.over and not source.ended:
        return "now"
    killed = f", {counted(latest.counts.killed, 'pod', 'pods')} killed" * bool(latest.counts.killed)
    return f"{latest.storm:%d %b %H:%M}{killed}"


def _verdict(rows: Sequence[FleetRow]) -> str:
    if not rows:
        return "There is no cluster."
    missed = sum(row.asked - row.met for row in rows)
    storms = sum(bool(row.says) for row in rows)
    unread = sum(row.word in {"not read", "not seen lately"} for row in rows)
    asked = sum(row.asked for row in rows)
    parts = [
        f"{counted(storms, 'storm runs', 'storms run')}." if storms else "No storm runs.",
        f"{counted(missed, 'on-demand floor is', 'on-demand floors are')} missed."
        if missed
        else "Every on-demand floor is met."
        if asked
        else ""
        if all(row.nodes is None for row in rows)
        else "No workload asks for an on-demand floor.",
        f"{counted(unread, 'cluster is', 'clusters are')} not read." if unread else "",
    ]
    return " ".join(filter(None, parts))
