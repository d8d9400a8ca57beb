"""A cluster: what stands, and which workload would lose the most?"""

from __future__ import annotations

from collections import Counter

from plimsoll_console.pages import Page, Request, missing
from plimsoll_console.sources import Source
from plimsoll_console.views.fleet import is_old
from plimsoll_console.views.words import ago, counted

PAGE = 50


def cluster(request: Request, source: Source) -> Page:
    """Show one cluster: nodes by capacity and zone, and its workloads, the worst first."""
    state = source.state(request.named["cluster"])
    if state is None:
        return missing(f"There is no cluster {request.named['cluster']}.")
    wanted = request.query.get("q", "")[:253]
    start = int(request.number("from") or 0)
    found = [
        load
        for load in state.loads
        if wanted.lower() in f"{load.ref.namespace}/{load.ref.name}".lower()
    ]
    end = len(found) if request.whole else start + PAGE
    nodes = state.seen.nodes if state.seen else ()
    places = Counter((node.capacity or "unknown", node.zone or "no zone") for node in nodes)
    bare = sum(load.least == 0 for load in state.loads)
    title = (
        f"{counted(bare, 'workload has', 'workloads have')} no Ready pod if all spot goes."
        if bare
        else "Every workload keeps a Ready pod if all spot goes."
        if state.loads
        else f"A stack tells of storms only: plimsoll console --context {state.name} reads the cluster."
        if state.told
        else "Nothing is known of its workloads yet."
    )
    return Page(
        template="cluster.html.j2",
        given={
            "here": "cluster",
            "cluster": state.name,
            "state": state,
            "title": f"{state.placement.verdict} {title}" if state.placement else title,
            "loads": found[start:end],
            "chosen": len(found),
            "next": end if end < len(found) else None,
            "q": wanted,
            "places": sorted(places.items()),
            "nodes": len(nodes),
            "old": is_old(state, source),
            "seen": ago(state.at, source.now()),
            "source": source,
        },
    )
