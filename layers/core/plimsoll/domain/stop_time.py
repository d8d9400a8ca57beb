"""How long a pod needs to stop, which is seldom its whole termination grace period.

The grace period is a maximum: charts set ten minutes for a server that stops in two seconds, and to
begin a stop that early takes the pod away minutes before it has to go. So, in this order:
  1. what the owner states in the annotation `plimsoll.dev/stop-seconds`;
  2. the whole grace period where the pod mounts a claim: what it has not written may be lost;
  3. else the grace period, but no more than thirty seconds, which is Kubernetes' own default, or than its preStop
     hook sleeps and ten seconds: a target of a load balancer serves on for so long after it was asked to stop.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from plimsoll.domain.names import STOP_SECONDS

DEFAULT_SECONDS: Final = 30


AFTER_SLEEP: Final = 10
"""What a container is reckoned to take to stop once its preStop hook has slept."""


def stop_seconds(
    grace_seconds: int, annotations: Mapping[str, str], *, volumes: bool, slept: int = 0
) -> int:
    """Return how long a pod needs to stop, from 0 to its termination grace period.

    An annotation that is no number of seconds counts as none: it is written by a tenant.
    """
    stated = annotations.get(STOP_SECONDS, "")
    if stated.isascii() and stated.isdecimal() and len(stated) <= 6:  # noqa: PLR2004 - eleven days
        return min(int(stated), grace_seconds)
    if volumes:
        return grace_seconds
    return min(grace_seconds, max(DEFAULT_SECONDS, slept + AFTER_SLEEP))
