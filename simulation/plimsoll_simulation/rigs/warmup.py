"""Before time 0: the cluster settles until every workload is fully Ready."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import timedelta
from typing import Final

from plimsoll.domain.errors import BadInput
from plimsoll.services.ports import Clock

LIMIT: Final = timedelta(minutes=10)
STEP: Final = timedelta(seconds=1)


class NeverReadyError(BadInput):
    """Some workloads were not fully Ready within the warm-up."""


def warm_up(
    clock: Clock, lacking: Callable[[], Sequence[str]], *, while_it_goes_on: bool = False
) -> None:
    """Let time pass until the drill may begin.

    Args:
        clock: of the drill: virtual time runs on while it waits.
        lacking: says in words what is not Ready yet, one for each thing.
        while_it_goes_on: the ten minutes begin anew whenever fewer things are not Ready than ever: real
            controllers make the pods of a large cluster at a rate of their own.

    Raises:
        NeverReadyError: after ten minutes something is still not Ready.
    """
    end, fewest = clock.now() + LIMIT, None
    while words := lacking():
        if while_it_goes_on and (fewest is None or len(words) < fewest):
            end, fewest = clock.now() + LIMIT, len(words)
        if clock.now() >= end:
            raise NeverReadyError(
                "after ten minutes the cluster is not ready for the drill: "
                + "; ".join(words)
                + ". Give the node groups more room, or the workloads less to ask for."
            )
        clock.sleep(STEP.total_seconds())
