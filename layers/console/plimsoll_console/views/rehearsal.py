"""Rehearsals: what would happen, and was it so?"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from plimsoll.domain.kubernetes import INSTANCE_TYPE
from plimsoll.domain.spot import SPOT
from plimsoll_console.pages import NOTHING_NEW, Page, Request, missing, url
from plimsoll_console.sources import ClusterState, Outcome, Rehearsal, Source
from plimsoll_console.views.words import ago

POLL_MS = 1000
MOST_SCOPES = 100


def rehearsals(request: Request, source: Source) -> Page:
    """List the rehearsals of a cluster, and offer another one."""
    state = source.state(request.named["cluster"])
    if state is None:
        return missing(f"There is no cluster {request.named['cluster']}.")
    found = source.rehearsals(state.name)
    return Page(
        template="rehearsals.html.j2",
        given={
            "here": "rehearsals",
            "cluster": state.name,
            "rehearsals": [(each, ago(each.at, source.now())) for each in found],
            "scopes": scopes_of(state),
            "running": any(each.stage in {"reading", "playing"} for each in found),
        },
    )


def rehearse(request: Request, source: Source) -> Page:
    """Begin a rehearsal, and go to it; nothing is written anywhere."""
    state = source.state(request.named["cluster"])
    if state is None:
        return missing(f"There is no cluster {request.named['cluster']}.")
    scope = request.form.get("scope", "")
    if scope not in dict(scopes_of(state)):
        return missing("No spot node of the cluster is in that scope.", "Choose one from the list.")
    begun = source.rehearse(state.name, scope)
    if begun is None:
        return Page(to=url("c", state.name, "rehearsals"))
    return Page(to=url("c", state.name, "rehearsals", str(begun.number)))


def rehearsal(request: Request, source: Source) -> Page:
    """Show one rehearsal: its progress, or what would happen beside what came."""
    state = source.state(request.named["cluster"])
    if state is None:
        return missing(f"There is no cluster {request.named['cluster']}.")
    number = request.named["number"]
    found = next((r for r in source.rehearsals(state.name) if str(r.number) == number), None)
    if found is None:
        return missing(
            f"{state.name} has no rehearsal {number}.",
            "The last 20 are kept until the console is closed.",
        )
    token = f"{found.stage}-{found.progress:.2f}"
    if request.fragment and request.query.get("seen") == token:
        return NOTHING_NEW
    came = _came(state, found)
    return Page(
        template="rehearsal.html.j2",
        fragment="rehearsal_live.html.j2",
        given={
            "here": "rehearsals",
            "cluster": state.name,
            "rehearsal": found,
            "rows": [(each, came.get(each.workload)) for each in found.outcomes],
            "harms": _harms(found.outcomes),
            "came": bool(came),
            "seen": token,
            "running": found.stage in {"reading", "playing"},
            "made": f"{found.at:%Y-%m-%d %H:%M} UTC"
            if request.whole
            else ago(found.at, source.now()),
            "poll_ms": POLL_MS,
        },
    )


def scopes_of(state: ClusterState) -> list[tuple[str, str]]:
    """Return what can be rehearsed, with its words: all spot, and each of its zones and families."""
    spot = [node for node in (state.seen.nodes if state.seen else ()) if node.capacity == SPOT]
    if not spot:
        return []
    zones = sorted({node.zone for node in spot if node.zone})
    types = (node.labels.get(INSTANCE_TYPE, "") for node in spot)
    families = sorted({name.partition(".")[0] for name in types if name})
    found = [("spot", f"all spot ({len(spot)} nodes)")]
    found += [(f"zone:{zone}", f"spot of the zone {zone}") for zone in zones]
    found += [(f"family:{family}", f"spot of the family {family}") for family in families]
    return found[:MOST_SCOPES]


def _harms(outcomes: Sequence[Outcome]) -> list[tuple[str, Mapping[str, str]]]:
    """Return each kind of harm that any workload would feel: its words, and workload -> how much."""
    kinds = {
        "at zero": {each.workload: _seconds(each.at_zero) for each in outcomes},
        "below floor": {each.workload: _seconds(each.below_floor) for each in outcomes},
        "killed": {each.workload: str(each.killed or "") for each in outcomes},
        "cut short": {each.workload: str(each.cut_short or "") for each in outcomes},
    }
    return [(words, found) for words, found in kinds.items() if any(found.values())]


def _seconds(seconds: float) -> str:
    return f"{seconds:.1f} s" if seconds else ""


def _came(state: ClusterState, found: Rehearsal) -> dict[str, int]:
    """Return the lowest Ready pods of the first storm of just these nodes that came after the rehearsal."""
    for frame in reversed(state.frames):
        if {node.name for node in frame.nodes} == found.nodes and found.nodes:
            return {each.ref: each.lowest for each in frame.workloads}
    return {}
