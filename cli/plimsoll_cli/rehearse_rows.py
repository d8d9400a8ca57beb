"""What a rehearsal foretells, as sentences and rows: for the screen and for the page."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from plimsoll_testbed.rehearsal.prediction import Prediction

HEAD: Final = (
    "workload",
    "replicas",
    "floor",
    "lowest",
    "below floor",
    "at zero",
    "killed",
    "cut short",
    "stops in",
)
ASKED: Final = ("group", "capacity", "asked after", "nodes added")
OBSTACLES: Final = ("in the way", "what", "why", "what to change")


def verdict(found: Prediction) -> str:
    """Return the answer in two sentences."""
    harmed = [each for each in found.outcomes if not each.unharmed]
    what = f"{found.cluster}: if {found.scope} goes, that is {len(found.nodes)} nodes with {found.pods} pods, "
    if found.at_zero:
        what += (
            f"{len(found.at_zero)} of {len(found.outcomes)} workloads would be at zero for a while."
        )
    elif harmed:
        what += f"none of {len(found.outcomes)} workloads would be at zero; {len(harmed)} would lose something."
    else:
        what += f"every one of {len(found.outcomes)} workloads would keep its ready floor."
    end = "it would be over" if found.settled else "it would still not be over"
    return f"{what} {end.capitalize()} after {found.seconds:.0f} s."


def outcome_rows(found: Prediction, *, harmed_only: bool = False) -> Sequence[Sequence[str]]:
    """Return a row for each workload, the worst first."""
    return [
        (
            each.workload,
            str(each.replicas),
            str(each.ready_floor),
            str(each.min_ready),
            _seconds(each.seconds_below_floor),
            _seconds(each.seconds_at_zero),
            str(each.pods_killed or "-"),
            str(each.pods_cut_short or "-"),
            each.stop or "-",
        )
        for each in found.outcomes
        if not (harmed_only and each.unharmed)
    ]


def asked_rows(found: Prediction) -> Sequence[Sequence[str]]:
    """Return a row for each node group that would be asked for capacity."""
    return [
        (each.group, each.capacity, f"{each.first_asked:.1f} s", str(each.nodes_added))
        for each in found.asked
    ]


def obstacle_rows(found: Prediction) -> Sequence[Sequence[str]]:
    """Return a row for each thing that is in the way."""
    return [(each.workload, each.kind, each.why, each.change or "-") for each in found.obstacles]


def _seconds(seconds: float) -> str:
    return f"{seconds:.1f} s" if seconds else "-"
