"""The port `Telemetry` in a drill: what services say goes to whoever listens; metrics are added."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable

from plimsoll.domain.reports import Metric
from plimsoll_simulation.measure.sentences import sentence


class DrillTelemetry:
    """Tells one listener."""

    def __init__(self, say: Callable[[str], None]) -> None:
        self._say = say
        self.metrics: Counter[str] = Counter()

    def log(self, message: str, **facts: object) -> None:
        """Say a message with its facts."""
        self._say(sentence(message, facts))

    def warn(self, message: str, **facts: object) -> None:
        """Say it as a warning."""
        self._say(f"warning: {sentence(message, facts)}")

    def count(self, metric: Metric, value: float = 1, *, cluster: str | None = None) -> None:
        """Add to a metric."""
        if cluster is None:
            self.metrics[metric] += value  # type: ignore[assignment] # Counter adds floats as well
