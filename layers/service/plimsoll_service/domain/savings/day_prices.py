"""The prices of a day, kept so that a later change of price is no saving."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import date

from msgspec.structs import replace

from plimsoll_service.domain.analysis import PriceTable
from plimsoll_service.wire.savings import DayPrices


def prices_of_day(
    day: date,
    table: PriceTable,
    types: Iterable[str],
    known: DayPrices | None,
    before: DayPrices | None,
) -> DayPrices:
    """Return the prices of a day; again is once.

    Args:
        day: of which.
        table: as it stands now; AWS may have been asked on the day before.
        types: instance types that the cluster has.
        known: what is kept of the day; None: nothing yet.
        before: what is kept of the day before: a type that went is still priced.
    """
    wanted = {*types, *(known or before or _NOTHING).nodes}
    found = {t: (table.prices[t].on_demand, table.prices[t].spot) for t in wanted & {*table.prices}}
    told = DayPrices(
        day=day,
        read_on=table.read_on,
        source=table.dates if table.region in table.dates else f"{table.region}, {table.dates}",
        nodes=found,
        volumes=dict(table.volumes),
        load_balancer=table.load_balancer,
    )
    if known is None:
        return told
    # The first word of AWS on a day counts for that day: a second would make equal runs differ.
    if known.read_on != day and _is_later(told.read_on, known.read_on):
        return replace(told, nodes=known.nodes | found)
    return replace(known, nodes=found | known.nodes)


def _is_later(new: date | None, old: date | None) -> bool:
    return new is not None and (old is None or new > old)


_NOTHING = DayPrices(day=date.min, source="", nodes={}, volumes={}, load_balancer=0.0)
