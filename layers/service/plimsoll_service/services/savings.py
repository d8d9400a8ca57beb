"""What advice saved: the days of a cluster, priced and compared when somebody asks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta
from typing import Final

from plimsoll_service.domain.advice import saved_columns
from plimsoll_service.domain.savings import LOOK_BACK, history_of, priced_days
from plimsoll_service.domain.snapshots import Span, Totals
from plimsoll_service.services.cluster_rows import NAMED, Sees, cluster_rows, row_key, tell_saved
from plimsoll_service.services.day_prices import day_prices
from plimsoll_service.services.kept_advice import read_recommendations
from plimsoll_service.services.paging import Filter, PageRequest, Rows, cut
from plimsoll_service.services.ports import TenantData
from plimsoll_service.services.stored import read
from plimsoll_service.wire.clusters import ClusterRow, SavedColumns, SavedMonth
from plimsoll_service.wire.savings import SavingsHistory

MOST_DAYS: Final = timedelta(days=92)
"""Of an answer, as of the days of a cluster."""
SAVED_FILTERS: Final[Mapping[str, Filter]] = {
    "month": Filter(description="a month such as 2026-11"),
    "name": NAMED,
}
_ONE: Final = timedelta(days=1)


def savings_history(
    data: TenantData, cluster: str, before: datetime | None, now: datetime
) -> SavingsHistory:
    """Return what recommendations were foreseen to save, and what the days after them show.

    Args:
        data: of the tenant.
        cluster: its id.
        before: the first day that is not in the answer; None: today.
        now: the time.
    """
    today = _today(now)
    end = today if before is None else min(today, before.astimezone(UTC).date())
    until = max(end, today - Span.DAY.kept) - _ONE
    since = until - MOST_DAYS + _ONE
    first, last = since - LOOK_BACK, until
    keys = (Span.DAY.key(datetime.combine(day, time(), UTC)) for day in (first, last))
    rollups = (read(data, cluster, each, Totals) for each in data.list(cluster, *keys))
    days = priced_days(
        (each for each in rollups if each is not None),
        list(day_prices(data, cluster, first, last)),
        until=until,
    )
    kept, _ = read_recommendations(data, cluster)
    return history_of(cluster, kept.recommendations, list(days), since=since, until=until)


@dataclass(frozen=True, slots=True, kw_only=True)
class SavedRow:
    """A cluster in a month. None: nobody told."""

    cluster: ClusterRow
    month: SavedMonth | None


@dataclass(frozen=True, slots=True, kw_only=True)
class SavedPage(Rows[SavedRow]):
    """A page of what the clusters of a tenant saved in a month, with sums over all that pass the filters."""

    month: str
    """Empty: no row tells of any."""
    months: Sequence[str]
    """Those that rows tell of, the newest first."""
    clusters: int
    cost: float
    saveable: float
    """Dollars a month, of today's nodes."""
    foreseen: float
    realised: float
    unrealised: int
    """Clusters that `realised` leaves out: they are not told of, or nothing of theirs can be compared."""


def saved_page(data: TenantData, asked: PageRequest, now: datetime, sees: Sees) -> SavedPage:
    """Return a page of what the clusters that somebody sees saved, by name: one query."""
    rows = cluster_rows(data, now, sees)
    months = sorted({m.month for row in rows if row.saved for m in row.saved.months}, reverse=True)
    month = asked.filters.get("month", months[0] if months else "")
    named = [row for row in rows if row.name.startswith(asked.filters.get("name", ""))]
    chosen = [SavedRow(cluster=row, month=_month_of(row, month)) for row in named]
    page = cut(chosen, asked, key=lambda each: row_key(each.cluster))
    told = [each.month for each in chosen if each.month]
    realised = [each.realised for each in told if each.realised is not None]
    return SavedPage(
        items=page.items,
        next=page.next,
        month=month,
        months=months,
        clusters=len(chosen),
        cost=sum(each.cost for each in told),
        saveable=sum(row.advised.saveable or 0.0 for row in named if row.advised),
        foreseen=sum(each.foreseen for each in told),
        realised=sum(realised),
        unrealised=len(chosen) - len(realised),
    )


def _month_of(row: ClusterRow, month: str) -> SavedMonth | None:
    months = row.saved.months if row.saved else ()
    return next((each for each in months if each.month == month), None)


def tell_what_was_saved(data: TenantData, cluster: str, now: datetime) -> None:
    """Write into the row of a cluster what its last whole day completes: once a day, whenever it is called first.

    Raises:
        Temporary: others write the row, again and again.
    """

    def told() -> SavedColumns:
        return saved_columns(savings_history(data, cluster, None, now))

    tell_saved(data, cluster, _today(now) - _ONE, told, now)


def _today(now: datetime) -> date:
    return now.astimezone(UTC).date()
