"""Before time 0: the cluster settles until every workload is fully Ready."""

from __future__ import annotations

from datetime import timedelta
from typing import Final

from plimsoll.domain.errors import BadInput
from plimsoll.drill.measure import Measurement
from plimsoll.drill.simulated.time import VirtualClock

LIMIT: Final = timedelta(minutes=10)
STEP: Final = timedelta(seconds=1)


class NeverReadyError(BadInput):
    """Some workloads were not fully Ready within the warm-up."""


def warm_up(clock: VirtualClock, measurement: Measurement) -> None:
    """Let virtual time pass until the drill may begin.

    Raises:
        NeverReadyError: after ten minutes something is still not Ready.
    """
    end = clock.now() + LIMIT
    while lacking := measurement.not_ready():
        if clock.now() >= end:
            raise NeverReadyError(
                "after ten minutes the cluster is not ready for the drill: "
                + "; ".join(lacking)
                + ". Give the node groups more room, or the workloads less to ask for."
            )
        clock.run_until(clock.now() + STEP)
