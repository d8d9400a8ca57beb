"""Creates Events of Kubernetes. What becomes of them never decides what becomes of a drain."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from itertools import batched
from typing import Final

from plimsoll.domain.errors import Conflict
from plimsoll.domain.kubernetes import ClusterEvent
from plimsoll.services.ports import EventWriter, Telemetry, Workers

MOST_EVENTS: Final = 96
"""Events that one run creates: an API server has better things to do in a storm."""
EVENTS_AT_ONCE: Final = 16
"""How many are created side by side: no more than these fail where the API server takes none."""


def create_events(
    cluster: EventWriter, events: Sequence[ClusterEvent], workers: Workers, telemetry: Telemetry
) -> None:
    """Create Events, and raise nothing. The first failure ends it: no API server is pressed further.

    One that was created before is as good as created.
    """
    for some in batched(events[:MOST_EVENTS], EVENTS_AT_ONCE, strict=False):
        answers = workers.run([partial(cluster.create_event, event) for event in some])
        # An Event's name is derived from its content, so a second one of that name is a repetition.
        errors = [e for e in answers if isinstance(e, Exception) and not isinstance(e, Conflict)]
        if errors:
            telemetry.warn("events not created", failed=len(errors), because=str(errors[0]))
            return
