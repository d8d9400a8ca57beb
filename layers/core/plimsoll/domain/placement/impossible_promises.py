"""Promises that no layout with spot keeps: which part of the window is too long, and what would mend it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Final

from plimsoll.domain.capacity import StartWindow
from plimsoll.domain.disruptions import LEAST_SECONDS
from plimsoll.domain.kubernetes import (
    KEEP_READY,
    STOP_SECONDS,
    ClusterEvent,
    Workload,
    about_workload,
)
from plimsoll.domain.placement.load_line import LossWindow, lines
from plimsoll.domain.placement.promises import PromisedWorkload

MORE_REPLICAS: Final = 2


def why_not_possible(workload: Workload, promised: PromisedWorkload) -> ClusterEvent | None:
    """Return the Event that says why a promise cannot be kept on spot, and the first cure that is enough by itself.

    None where a layout with spot keeps it, where its owner wants all replicas on on-demand, and where there is no spot.
    """
    wanted, replicas = promised.wanted, promised.replicas
    if wanted > replicas:
        why = f"{wanted} replicas are promised, and it has {replicas}: its layout stays as it is"
        return _told(workload, why, cause="too few replicas")
    if promised.line.layout.spot_groups or not promised.spot or promised.hard >= replicas:
        return None
    window = promised.window
    parts = {
        "the start of its pods": window.start_seconds,
        "the start of a node": window.node_seconds,
        "the stop of its pods": max(LEAST_SECONDS, window.stop_seconds),
    }
    part = max(parts, key=lambda name: parts[name])
    cure = next(_cures(promised), "promise fewer replicas")
    return _told(
        workload,
        f"no layout with spot keeps {wanted} of {replicas} Ready for {promised.promise.percent:g} % of the time, so that "
        f"all stand on on-demand. The longest part of the window is {part} ({parts[part]:.0f} s): {cure}",
        cause=f"{promised.promise}{replicas}{part}{cure}",
    )


def _cures(promised: PromisedWorkload) -> Iterator[str]:
    """Yield what would mend it, what costs its owner least first."""
    window = promised.window
    if window.node_seconds and _is_possible(promised, replace(window, node_seconds=0)):
        yield "keep places for its pods free"
    if window.stop_seconds > LEAST_SECONDS and _is_possible(
        promised, replace(window, stop_seconds=LEAST_SECONDS)
    ):
        yield f"let its pods stop within {LEAST_SECONDS} s, and state that in {STOP_SECONDS}"
    more = promised.replicas + MORE_REPLICAS
    if _is_possible(promised, window, more):
        yield f'run {more} replicas, and promise {KEEP_READY}: "{promised.wanted}"'
    start = _enough_start(promised)
    if start is not None:
        yield f"shorten the start of its pods from {window.start_seconds:.0f} s to {start} s"


def _enough_start(promised: PromisedWorkload) -> int | None:
    """Return the longest start of its pods by which the promise can be kept, in seconds; None where none is enough."""
    enough, too_long = 0, int(promised.window.start_seconds)
    while too_long - enough > 1:
        middle = (enough + too_long) // 2
        if _is_possible(promised, replace(promised.window, start_seconds=middle)):
            enough = middle
        else:
            too_long = middle
    return enough or None


def _is_possible(
    promised: PromisedWorkload, window: StartWindow, replicas: int | None = None
) -> bool:
    """Whether a layout with spot would keep the promise and the hard floor."""
    count = promised.replicas if replicas is None else replicas
    return any(
        line.below <= promised.promise.broken and line.layout.floor(count) >= promised.hard
        for line in lines(count, promised.wanted, promised.spot, LossWindow.of(window))
        if line.layout.spot_groups
    )


def _told(workload: Workload, why: str, cause: str) -> ClusterEvent:
    event = about_workload(workload, "PromiseNotPossible", f"{workload.ref}: {why}")
    return replace(event, cause=cause)
