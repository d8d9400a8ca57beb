"""The prediction of a rehearsal as sentences and rows, for the terminal and the page."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from plimsoll_console.placements import Table
from plimsoll_console.sources import Outcome, Rehearsal
from plimsoll_simulation.rehearsal.prediction import Prediction

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
MARKS: Final = (
    "workload",
    "ready",
    "promised",
    "without a node",
    "a family",
    "a zone",
    "all spot",
    "these nodes",
    "played",
)
ASKED: Final = ("group", "capacity", "requested after", "nodes added")
MARKS_SAY: Final = (
    "Ready replicas less those on the worst spot node, spot family, spot instances of a zone, and all spot. The last two "
    "columns are about the rehearsed nodes: by the same rule, and as it was played, with replacements."
)
OBSTACLES: Final = ("workload", "obstacle", "reason", "what to change")


def verdict(found: Prediction) -> str:
    """Return the answer in two sentences."""
    harmed = [each for each in found.outcomes if not each.unharmed]
    what = f"{found.cluster}: an interruption of {found.scope} takes {len(found.nodes)} nodes with {found.pods} pods; "
    if found.at_zero:
        what += (
            f"{len(found.at_zero)} of {len(found.outcomes)} workloads would be at zero for a time."
        )
    elif harmed:
        what += f"none of {len(found.outcomes)} workloads would be at zero; {len(harmed)} would lose pods or fall below the ready floor."
    else:
        what += f"all {len(found.outcomes)} workloads would keep their ready floor."
    end = "Settled" if found.settled else "Not settled"
    return f"{what} {end} after {found.seconds:.0f} s."


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


def mark_rows(found: Prediction) -> Sequence[Sequence[str]]:
    """Return what stays Ready of each workload on spot: by the rule, and as it was played."""
    return [
        (
            each.workload,
            str(each.ready),
            "-" if each.promised is None else str(each.promised),
            *(
                f"{'-' if stays is None else stays}{' (broken)' if each.breaks(stays) else ''}"
                for stays in (*(mark.stays for mark in each.marks), each.left, each.played)
            ),
        )
        for each in found.marks
    ]


def asked_rows(found: Prediction) -> Sequence[Sequence[str]]:
    """Return a row for each node group that Plimsoll would ask for capacity."""
    return [
        (each.group, each.capacity, f"{each.first_asked:.1f} s", str(each.nodes_added))
        for each in found.asked
    ]


def obstacle_rows(found: Prediction) -> Sequence[Sequence[str]]:
    """Return a row for each obstacle."""
    return [(each.workload, each.kind, each.why, each.change or "-") for each in found.obstacles]


def played(begun: Rehearsal, found: Prediction) -> Rehearsal:
    """Return a rehearsal as it is shown once it was played."""
    return replace(
        begun,
        stage="done",
        progress=1.0,
        verdict=verdict(found),
        outcomes=tuple(
            Outcome(
                workload=each.workload,
                replicas=each.replicas,
                floor=each.ready_floor,
                lowest=each.min_ready,
                unharmed=each.unharmed,
                below_floor=each.seconds_below_floor,
                at_zero=each.seconds_at_zero,
                killed=each.pods_killed,
                cut_short=each.pods_cut_short,
                stop=each.stop,
            )
            for each in found.outcomes
        ),
        tables=(
            Table(title="What is in the way", columns=OBSTACLES, rows=obstacle_rows(found)),
            Table(title="Capacity that would be requested", columns=ASKED, rows=asked_rows(found)),
            Table(
                title="What stays Ready if spot instances go",
                columns=MARKS,
                rows=mark_rows(found),
                note=MARKS_SAY,
            ),
        ),
        notes=tuple(found.notes),
        nodes=frozenset(node.name for node in found.nodes),
    )


def _seconds(seconds: float) -> str:
    return f"{seconds:.1f} s" if seconds else "-"
