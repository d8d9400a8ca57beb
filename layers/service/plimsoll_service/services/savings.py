"""What advice saved: the days of a cluster, priced and compared when somebody asks."""

from __future__ import annotations

from datetime import UTC, datetime, time, timedelta
from typing import Final

from plimsoll_service.domain.savings import LOOK_BACK, history_of, priced_days
from plimsoll_service.domain.snapshots import Span, Totals
from plimsoll_service.services.day_prices import day_prices
from plimsoll_service.services.ports import TenantData
from plimsoll_service.services.recommendations import RECOMMENDATIONS
from plimsoll_service.services.stored import read, stored
from plimsoll_service.wire.advice import Recommendations
from plimsoll_service.wire.savings import SavingsHistory

MOST_DAYS: Final = timedelta(days=92)
"""Of an answer, as of the days of a cluster."""
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
    today = now.astimezone(UTC).date()
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
    kept, _ = stored(data, cluster, RECOMMENDATIONS, Recommendations)
    taken = kept.recommendations if kept else ()
    return history_of(cluster, taken, list(days), since=since, until=until)
