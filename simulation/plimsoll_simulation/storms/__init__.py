from __future__ import annotations

from plimsoll_simulation.storms.compare import Other, Worse
from plimsoll_simulation.storms.draw import draw_storm, storm_by
from plimsoll_simulation.storms.files import read_storm, write_storm
from plimsoll_simulation.storms.model import Storm
from plimsoll_simulation.storms.neighbours import DRAINS, beside
from plimsoll_simulation.storms.play import StormResult, play_kept, play_storm
from plimsoll_simulation.storms.shrink import shrink
from plimsoll_simulation.storms.watch import Violation

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
