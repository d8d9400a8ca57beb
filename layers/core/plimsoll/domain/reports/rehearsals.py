"""What was predicted of an interruption, beside what happened.

A rehearsal is kept as reports are, one for each node that it took away, under a name of its own. So a real
interruption has one of the same shape to be held against, by its instance.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

from plimsoll.domain.reports.reasons import Reason
from plimsoll.domain.reports.report import PLACEMENT, SCALE_UP, Report

REHEARSAL: Final = "rehearsal"
"""The kind of these reports, and the first part of their ids."""
ONE_EVENT_WITHIN: Final = timedelta(minutes=2)
"""Interruptions whose notices are no further apart are one event: so long is the lead of a spot notice."""


def rehearsals_of(cluster: str) -> str:
    """Return what rehearsals stand under: beside the reports of interruptions, and no cluster's name."""
    return f"*{REHEARSAL}/{cluster}"


def rehearsal_report(  # noqa: PLR0913 - what is predicted of a node
    cluster: str,
    *,
    instance: str,
    node: str,
    scope: str,
    at: datetime,
    emptied: timedelta | None,
    lowest_ready: Mapping[str, int],
) -> Report:
    """Return what a rehearsal predicts of one node, as a report.

    Args:
        cluster: its name.
        instance: the instance behind the node.
        node: its name.
        scope: what was taken away together, in words.
        at: when the cluster was read; it stands for the notice.
        emptied: from the notice until the node is empty; None: not before its instance goes.
        lowest_ready: workload on the node -> the fewest Ready replicas.
    """
    return Report(
        interruption=f"{REHEARSAL}@{instance}/{at:%Y-%m-%dT%H:%M:%SZ}/{scope}",
        cluster=rehearsals_of(cluster),
        node=node,
        kind=REHEARSAL,
        noticed=at,
        emptied=None if emptied is None else at + emptied,
        lowest_ready=lowest_ready,
        reasons=(Reason(why=scope),),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
    """One interruption beside the rehearsal that was most like it."""

    rehearsed: datetime
    """When the cluster was read."""
    scope: str
    nodes_predicted: int
    """Nodes that the rehearsal took away."""
    nodes_of_these: int
    """Of them, those that went."""
    nodes_besides: int
    """Others that went at the same time."""
    lowest_ready: Mapping[str, tuple[int, int]]
    """Workload that both tell of -> predicted, happened."""
    emptied: tuple[float | None, float | None]
    """Seconds from the notice until the node was empty: predicted, happened."""

    @property
    def wrong(self) -> Mapping[str, tuple[int, int]]:
        """Of `lowest_ready` what came otherwise."""
        return {name: pair for name, pair in self.lowest_ready.items() if pair[0] != pair[1]}


def compare_rehearsals(
    report: Report, reports: Sequence[Report], rehearsals: Sequence[Report]
) -> Comparison | None:
    """Return an interruption beside what was predicted of it; None where it was not rehearsed.

    Of several rehearsals of the instance that one counts whose nodes are most like those that went together,
    and the newest of these.

    Args:
        report: of the interruption.
        reports: of its cluster; those of about the same time went together with it.
        rehearsals: of its cluster.
    """
    if report.kind in {PLACEMENT, REHEARSAL, SCALE_UP}:
        return None
    went = {
        _instance(each)
        for each in reports
        if each.deadline is not None and abs(each.noticed - report.noticed) <= ONE_EVENT_WITHIN
    } | {_instance(report)}
    runs: dict[tuple[datetime, str], dict[str, Report]] = defaultdict(dict)
    for each in rehearsals:
        if each.noticed <= report.noticed:
            runs[each.noticed, _scope(each)][_instance(each)] = each
    known = [(key, run) for key, run in runs.items() if _instance(report) in run]
    if not known:
        return None
    (at, scope), run = max(known, key=lambda one: (_likeness(one[1].keys(), went), one[0]))
    told = run[_instance(report)]
    both = told.lowest_ready.keys() & report.lowest_ready.keys()
    return Comparison(
        rehearsed=at,
        scope=scope,
        nodes_predicted=len(run),
        nodes_of_these=len(run.keys() & went),
        nodes_besides=len(went - run.keys()),
        lowest_ready={
            name: (told.lowest_ready[name], report.lowest_ready[name]) for name in sorted(both)
        },
        emptied=(_emptied(told), _emptied(report)),
    )


def _likeness(predicted: Collection[str], went: Collection[str]) -> float:
    return len({*predicted} & {*went}) / len({*predicted, *went})


def _instance(report: Report) -> str:
    """Return the instance of an interruption, or of what a rehearsal predicted."""
    first, _, rest = report.interruption.partition("@")
    return rest.partition("/")[0] if report.kind == REHEARSAL else first


def _scope(report: Report) -> str:
    return report.reasons[0].why if report.reasons else ""


def _emptied(report: Report) -> float | None:
    if report.emptied is None:
        return None
    return round((report.emptied - report.noticed).total_seconds(), 1)
