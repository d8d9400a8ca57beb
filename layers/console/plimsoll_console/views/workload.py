"""A workload: how much of it rides on spot, and what would stay?"""

from __future__ import annotations

from typing import TYPE_CHECKING

from plimsoll_console.drawing import load_line
from plimsoll_console.loads import Load, loss_words
from plimsoll_console.pages import Page, Request, missing
from plimsoll_console.sources import ClusterState, Source
from plimsoll_console.views.fleet import is_old
from plimsoll_console.views.storm import workload_word
from plimsoll_console.views.words import ago

if TYPE_CHECKING:  # the first page does not wait for what it never needs
    from plimsoll.domain.frames import Frame, WorkloadFrame

MOST_STORMS = 20


def workload(request: Request, source: Source) -> Page:
    """Show one workload."""
    named = request.named
    state = source.state(named["cluster"])
    if state is None:
        return missing(f"There is no cluster {named['cluster']}.")
    key = (named["kind"], named["namespace"], named["name"])
    load = next((each for each in state.loads if tuple(each.ref) == key), None)
    storms = storms_of(state, f"{key[0]} {key[1]}/{key[2]}")
    if load is None and not storms:
        return missing(
            f"{state.name} has no {key[0]} {key[1]}/{key[2]} with replicas.",
            "It may have been scaled to zero or deleted since.",
        )
    return Page(
        template="workload.html.j2",
        given={
            "here": "workloads",
            "cluster": state.name,
            "kind": key[0],
            "namespace": key[1],
            "name": key[2],
            "load": load,
            "title": "A stack tells of its storms only." if state.told else workload_title(load),
            "drawing": _drawing(load) if load else None,
            "marks": [(loss_words(mark), mark.stays) for mark in load.marks] if load else [],
            "storms": storms,
            "old": is_old(state, source),
            "seen": ago(state.loads_at or state.at, source.now()),
            "state": state,
        },
    )


def workload_title(load: Load | None) -> str:
    """Return in a sentence what stays of a workload."""
    if load is None:
        return "It is not there any more."
    if load.line is None:
        return f"{load.least} of {load.replicas} would stay if all spot went. No on-demand floor is asked for."
    if load.short:
        return f"{load.least} would stay if all spot went; the on-demand floor is {load.line}."
    return f"{load.least} of {load.replicas} stay whatever spot does. The on-demand floor is {load.line}."


def storms_of(state: ClusterState, ref: str) -> list[tuple[Frame, WorkloadFrame, str, str]]:
    """Return the storms that took pods of a workload, the newest first: each by its last frame."""
    last: dict[object, tuple[Frame, WorkloadFrame]] = {}
    for frame in state.frames:
        for found in frame.workloads:
            if found.ref == ref:
                last[frame.storm] = frame, found
    newest = [*last.values()][::-1][:MOST_STORMS]
    return [(frame, found, *workload_word(found)) for frame, found in newest]


def _drawing(load: Load) -> object:
    return load_line(
        f"{load.ref.namespace}/{load.ref.name}",
        load.on_demand,
        load.spot,
        load.replicas,
        load.line,
        [(loss_words(mark), mark.stays) for mark in load.marks],
    )
