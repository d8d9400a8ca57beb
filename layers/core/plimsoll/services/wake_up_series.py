"""Wakes the drain of a cluster again and again after a notice."""

from __future__ import annotations

from datetime import datetime

from plimsoll.services.ports import Clock, WakeUps
from plimsoll.services.retry_policy import SERIES_SHARED, SLOW_WAKE_UPS, URGENT_WAKE_UPS


class WakeUpSeries:
    """Sends series of wake-ups, and remembers when this process last sent all urgent ones of a cluster."""

    def __init__(self, wake_ups: WakeUps, clock: Clock) -> None:
        self._wake_ups = wake_ups
        self._clock = clock
        self._urgent: dict[str, datetime] = {}

    def send(self, cluster: str, *, urgent: bool, traceparent: str | None = None) -> None:
        """Send a series of wake-ups, or a single one if an urgent series was sent just before.

        Args:
            cluster: whose drain is woken.
            urgent: some deadline is near.
            traceparent: of the span that sends them.
        """
        now, last = self._clock.now(), self._urgent.get(cluster)
        if urgent and last is not None and now - last < SERIES_SHARED:
            self._wake_ups.send(cluster, (0,), traceparent)
            return
        self._wake_ups.send(cluster, URGENT_WAKE_UPS if urgent else SLOW_WAKE_UPS, traceparent)
        # Noted only when all were sent: a series that failed in part is sent again as a whole.
        if urgent:
            self._urgent[cluster] = now
