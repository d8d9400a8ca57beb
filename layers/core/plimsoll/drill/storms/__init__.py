from __future__ import annotations

from plimsoll.drill.storms.draw import draw_storm, storm_by
from plimsoll.drill.storms.files import read_storm, write_storm
from plimsoll.drill.storms.model import Storm
from plimsoll.drill.storms.play import Verdict, play_kept, play_storm
from plimsoll.drill.storms.shrink import shrink
from plimsoll.drill.storms.watch import Violation

__all__ = [
    "Storm",
    "Verdict",
    "Violation",
    "draw_storm",
    "play_kept",
    "play_storm",
    "read_storm",
    "shrink",
    "storm_by",
    "write_storm",
]
