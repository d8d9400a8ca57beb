"""Every screen of the console: one table, whoever serves it."""

from __future__ import annotations

from typing import Final

from plimsoll_console.pages import Route
from plimsoll_console.views.cluster import cluster
from plimsoll_console.views.fleet import fleet
from plimsoll_console.views.interruptions import interruption, interruptions
from plimsoll_console.views.queues import queues
from plimsoll_console.views.rehearsal import rehearsal, rehearsals, rehearse
from plimsoll_console.views.storm import storm
from plimsoll_console.views.workload import workload

ROUTES: Final = (
    Route("GET", "/", fleet),
    Route("GET", "/c/{cluster}", cluster),
    Route("GET", "/c/{cluster}/storm", storm),
    Route("GET", "/c/{cluster}/w/{kind}/{namespace}/{name}", workload),
    Route("GET", "/c/{cluster}/queues", queues),
    Route("GET", "/c/{cluster}/interruptions", interruptions),
    Route("GET", "/c/{cluster}/interruptions/{interruption}", interruption),
    Route("GET", "/c/{cluster}/rehearsals", rehearsals),
    Route("POST", "/c/{cluster}/rehearsals", rehearse),
    Route("GET", "/c/{cluster}/rehearsals/{number}", rehearsal),
)
