"""What a cluster could save: consolidation, a cheaper mix of instances, other requests, and what nobody uses."""

from __future__ import annotations

from plimsoll_service.domain.analysis.analysis import analyse
from plimsoll_service.domain.analysis.cluster_view import View
from plimsoll_service.domain.analysis.consolidation import Consolidation
from plimsoll_service.domain.analysis.floors import standing_of
from plimsoll_service.domain.analysis.prices import HOURS_PER_MONTH, Price, PriceTable, Size
from plimsoll_service.domain.analysis.right_sizing import HISTORY, YOUNGEST
from plimsoll_service.domain.analysis.time_limit import OutOfTime, never

__all__ = [
    "HISTORY",
    "HOURS_PER_MONTH",
    "YOUNGEST",
    "Consolidation",
    "OutOfTime",
    "Price",
    "PriceTable",
    "Size",
    "View",
    "analyse",
    "never",
    "standing_of",
]
