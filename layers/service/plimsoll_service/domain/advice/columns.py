"""What the advice writes into the row of a cluster."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

import msgspec

from plimsoll_service.domain.analysis import View, standing_of
from plimsoll_service.wire.advice import Advice, Recommendation
from plimsoll_service.wire.clusters import AdvisedColumns, SavedColumns, SavedMonth
from plimsoll_service.wire.savings import SavingsHistory

MONTHS: Final = 2
"""Of a row: this one, and the last one."""


def advised_columns(
    view: View, advice: Advice, recommendations: Iterable[Recommendation]
) -> AdvisedColumns:
    """Return the columns of an analysed cluster.

    A sum without the price of a node is no cost, and an agent that tells nothing of itself tells of no promise:
    both are not told.
    """
    standing, tells_promises = standing_of(view), view.seen.agent is not None
    priced = not advice.unpriced
    return AdvisedColumns(
        taken_at=view.at,
        floors=standing.floors,
        floors_missed=standing.floors_missed,
        lines=standing.lines if tells_promises else None,
        lines_broken=standing.lines_broken if tells_promises else None,
        decisions=sum(each.state == "open" for each in recommendations),
        monthly=advice.today.monthly if priced else None,
        saveable=max(0.0, advice.today.monthly - advice.optimised.monthly) if priced else None,
    )


def saved_columns(history: SavingsHistory) -> SavedColumns:
    """Return the columns of a cluster whose days were compared."""
    known = [month for month in history.months if month.days]
    months = msgspec.convert(known[-MONTHS:], tuple[SavedMonth, ...], from_attributes=True)
    return SavedColumns(until=history.until, months=months)
