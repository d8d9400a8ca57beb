"""Logs and metrics of the functions: structured lines and embedded metrics on standard output.

Both are written by the runtime's own log stream, so they cost no call and no right. Spans are the business
of `plimsoll.adapters.opentelemetry`.
"""

from __future__ import annotations

import logging
import warnings
from typing import Final

from aws_lambda_powertools import Logger, Metrics, single_metric
from aws_lambda_powertools.metrics import MetricUnit

from plimsoll.domain.reports import Metric

NAMESPACE: Final = "Plimsoll"

logger: Final = Logger(serialize_stacktrace=False)  # the exception's text holds it already
metrics: Final = Metrics(namespace=NAMESPACE)

# Most invocations have nothing to count.
warnings.filterwarnings("ignore", message="No application metrics to publish")


class CloudWatch:
    """Says what the services report: facts as keys of a log line, metrics in embedded format."""

    def log(self, message: str, **facts: object) -> None:
        """Log a stable message with facts beside it."""
        logger.info(message, extra=_safe(facts))

    def warn(self, message: str, **facts: object) -> None:
        """Log something that a person should look at when it repeats."""
        logger.warning(message, extra=_safe(facts))

    def count(self, metric: Metric, value: float = 1, *, cluster: str | None = None) -> None:
        """Add to a metric."""
        unit = MetricUnit(metric.unit)
        if cluster is None:
            metrics.add_metric(name=metric, unit=unit, value=value)
            return
        # A line of its own: all metrics of a line have the same dimensions.
        with single_metric(
            name=metric,
            unit=unit,
            value=value,
            namespace=NAMESPACE,
            default_dimensions={"service": metrics.service or ""},
        ) as one:
            one.add_dimension("cluster", cluster)


_TAKEN: Final = frozenset({*logging.makeLogRecord({}).__dict__, "message", "asctime"})


def _safe(facts: dict[str, object]) -> dict[str, object]:
    """Rename the facts whose names `logging` keeps for itself: it would raise a KeyError."""
    return {f"{key}_" if key in _TAKEN else key: value for key, value in facts.items()}
