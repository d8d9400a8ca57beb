"""What accepted recommendations saved: the bill of the days after a change against that of the days before."""

from __future__ import annotations

from plimsoll_service.domain.savings.bills import priced_days
from plimsoll_service.domain.savings.day_prices import prices_of_day
from plimsoll_service.domain.savings.history import LOOK_BACK, history_of

__all__ = ["LOOK_BACK", "history_of", "priced_days", "prices_of_day"]
