"""The prices of a cluster's days, kept by the runs of the advice."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import suppress
from datetime import UTC, date, datetime, timedelta
from typing import Final

from plimsoll.domain.errors import Conflict
from plimsoll_service.domain.analysis import PriceTable
from plimsoll_service.domain.savings import prices_of_day
from plimsoll_service.domain.snapshots import Span
from plimsoll_service.services.ports import TenantData
from plimsoll_service.services.stored import read, stored
from plimsoll_service.wire.documents import encode
from plimsoll_service.wire.savings import DayPrices

_PREFIX: Final = "prices#"


def keep_prices(
    data: TenantData, cluster: str, table: PriceTable, types: Iterable[str], now: datetime
) -> None:
    """Keep what the instance types of a cluster cost today. Again is once."""
    today = now.astimezone(UTC).date()
    known, version = stored(data, cluster, _key(today), DayPrices)
    yesterday = today - timedelta(days=1)
    before = None if known else stored(data, cluster, _key(yesterday), DayPrices)[0]
    made = prices_of_day(today, table, types, known, before)
    if made != known:
        with suppress(Conflict):  # another run keeps them, and the next one adds what it lacks
            expires = now + Span.DAY.kept
            data.put(cluster, _key(today), encode(made), version=version, expires=expires)


def day_prices(data: TenantData, cluster: str, first: date, last: date) -> Iterator[DayPrices]:
    """Yield the prices of days, in their order."""
    found = data.list(cluster, _key(first), _key(last))
    read_back = (read(data, cluster, each, DayPrices) for each in found)
    return (each for each in read_back if each is not None)


def _key(day: date) -> str:
    return f"{_PREFIX}{day}"
