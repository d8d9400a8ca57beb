"""When the resync runs in a drill: what a lost notice costs is how long its net is in coming."""

from __future__ import annotations

from datetime import timedelta
from typing import Final

RESYNC: Final = timedelta(seconds=60)
RESYNC_PHASE: Final = timedelta(seconds=37)
"""From time 0 to the first resync after it: one at the second of a notice would do its work."""
