"""The port `Telemetry` in a drill: what services say goes to whoever listens; metrics are added."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable


class DrillTelemetry:
    """Tells one listener."""

    def __init__(self, say: Callable[[str], None]) -> None:
        self._say = say
        self.metrics: Counter[str] = Counter()

    def log(self, message: str, **facts: object) -> None:
        """Say a message with its facts."""
        told = ", ".join(f"{name}={fact}" for name, fact in facts.items())
        self._say(f"{message}: {told}" if told else message)

    def warn(self, message: str, **facts: object) -> None:
        """Say it as a warning."""
        self.log(f"warning: {message}", **facts)

    def count(self, metric: str, value: float = 1, unit: str = "Count") -> None:  # noqa: ARG002 - the port's shape
        """Add to a metric."""
        self.metrics[metric] += value  # type: ignore[assignment] # Counter adds floats as well
