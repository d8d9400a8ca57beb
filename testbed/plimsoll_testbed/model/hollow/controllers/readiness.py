"""When a pod counts as available: Ready for `minReadySeconds`.

Source: k8s.io/kubernetes/pkg/api/v1/pod, IsPodAvailable.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime, timedelta

from plimsoll_testbed.model.hollow.conditions import condition, is_ready
from plimsoll_testbed.model.hollow.edits import Json
from plimsoll_testbed.model.hollow.stamps import moment


def available_at(pod: Json, min_ready_seconds: int) -> datetime | None:
    """Return from when on a pod counts as available; None while it is not Ready."""
    ready = condition(pod, "Ready")
    if ready is None or ready["status"] != "True":
        return None
    return moment(ready["lastTransitionTime"]) + timedelta(seconds=min_ready_seconds)


def availability(
    pods: Iterable[Json], min_ready_seconds: int, now: datetime
) -> tuple[int, datetime | None]:
    """Return how many pods are available, and when the next one will be by waiting alone."""
    if not min_ready_seconds:
        return sum(1 for pod in pods if is_ready(pod)), None
    times = [at for pod in pods if (at := available_at(pod, min_ready_seconds)) is not None]
    later = [at for at in times if at > now]
    return len(times) - len(later), min(later, default=None)
