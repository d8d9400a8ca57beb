from __future__ import annotations

from plimsoll_testbed.storms.compare import Other, Worse
from plimsoll_testbed.storms.draw import draw_storm, storm_by
from plimsoll_testbed.storms.files import read_storm, write_storm
from plimsoll_testbed.storms.model import Storm
from plimsoll_testbed.storms.neighbours import DRAINS, beside
from plimsoll_testbed.storms.play import StormResult, play_kept, play_storm
from plimsoll_testbed.storms.shrink import shrink
from plimsoll_testbed.storms.watch import Violation

__all__ = [
    "DRAINS",
    "Other",
    "Storm",
    "StormResult",
    "Violation",
    "Worse",
    "beside",
    "draw_storm",
    "play_kept",
    "play_storm",
    "read_storm",
    "shrink",
    "storm_by",
    "write_storm",
]
