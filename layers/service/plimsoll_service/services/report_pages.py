"""Pages of the reports of a tenant's cluster, which an interruption stack keeps."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Final, get_args

from plimsoll.domain.errors import NotFound
from plimsoll.domain.reports import Outcome, Report
from plimsoll_service.services.interruption_stack import InterruptionStack
from plimsoll_service.services.paging import MOST_ROWS_READ, Filter, PageRequest, cut
from plimsoll_service.wire.reports import ReportPage, ReportRow

REPORT: Final = "report#"
REPORT_FILTERS: Final[Mapping[str, Filter]] = {
    "outcome": Filter(description="the worst that it came to", values=get_args(Outcome.__value__)),
    "kind": Filter(description="the kind of the notice"),
    "node": Filter(description="the name of the node"),
}


def report_page(
    stack: InterruptionStack | None, cluster: str, asked: PageRequest, now: datetime
) -> ReportPage:
    """Return a page of the reports of a cluster, newest first.

    Args:
        stack: None: the service is told of no interruption stack.
        cluster: the id of its agent. Whoever asks may see it.
        asked: which page.
        now: the time.

    Raises:
        NotFound: no registered cluster is bound to the agent.
        PlimsollError: the stack cannot be read.
    """
    registered = None if stack is None else stack.registered(cluster, now)
    if stack is None or registered is None:
        raise NotFound(
            f"no interruption stack tells of {cluster}: its operator binds it by "
            f"`plimsoll clusters set NAME --agent {cluster}`"
        )
    found = stack.newest_reports(registered, limit=MOST_ROWS_READ + 1)
    kept = sorted(found[:MOST_ROWS_READ], key=_key, reverse=True)
    chosen = [
        each
        for each in kept
        if all(getattr(each, name) == value for name, value in asked.filters.items())
    ]
    page = cut(chosen, asked, key=_key, descending=True)
    return ReportPage(
        items=tuple(map(_row, page.items)),
        next=page.next,
        as_of=now,
        counts=dict(Counter(each.outcome for each in chosen)),
        complete=len(found) <= MOST_ROWS_READ,
    )


def _key(report: Report) -> str:
    at = report.noticed.astimezone(UTC).isoformat(timespec="microseconds")
    return f"{REPORT}{at}#{report.interruption}"


def _row(report: Report) -> ReportRow:
    return ReportRow(
        interruption=report.interruption,
        node=report.node,
        kind=report.kind,
        outcome=report.outcome,
        noticed=report.noticed,
        deadline=report.deadline,
        cordoned=report.cordoned,
        capacity_asked=report.capacity_asked,
        replaced=report.replaced,
        emptied=report.emptied,
        gone=report.gone,
        closed=report.closed,
        killed=len(report.killed),
        below_floor=len(report.below_floor),
        overruled=len(report.overruled),
        added=sum(count for count in report.added.values() if count > 0),
        refused=len(report.refused),
    )
