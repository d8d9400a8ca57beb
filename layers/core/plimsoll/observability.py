"""Logs and metrics of the functions: structured lines and embedded metrics on standard output.

Both are written by the runtime's own log stream, so they cost no call and no right. Tracing is the
template's business (`Tracing`): Lambda carries the trace through the queues by itself.
"""

from __future__ import annotations

import logging
import warnings
from enum import StrEnum
from typing import Final

from aws_lambda_powertools import Logger, Metrics
from aws_lambda_powertools.metrics import MetricUnit

NAMESPACE: Final = "Plimsoll"

logger: Final = Logger(serialize_stacktrace=False)  # the exception's text holds it already
metrics: Final = Metrics(namespace=NAMESPACE)

# Most invocations have nothing to count.
warnings.filterwarnings("ignore", message="No application metrics to publish")


class Metric(StrEnum):
    """The metrics that alarms and dashboards stand on; a test compares them with the template."""

    NOTICE_AGE_AT_CORDON = "NoticeAgeAtCordon"
    """Seconds from an event's own time to the patch that cordons its node."""
    CANARIES_SEEN = "CanariesSeen"
    """Canaries that went the whole way of a notice."""
    NOTICES_DEAD_LETTERED = "NoticesDeadLettered"
    """Notices set aside because no further attempt could help."""
    NOTICES_IGNORED = "NoticesIgnored"
    """Notices that ask for nothing."""
    NOTICES_FOUND_BY_RESYNC = "NoticesFoundByResync"
    """Instances that were going and no event had said so."""
    NOTICES_NOT_OURS = "NoticesNotOurs"
    """Notices about instances of no registered cluster."""
    OPEN_INTERRUPTIONS = "OpenInterruptions"
    """Interruptions that a resync found open."""
    PODS_KILLED = "PodsKilled"
    """Pods that were still running when their instance went."""
    RESYNC_FINISHED = "ResyncFinished"
    """Resyncs that ended well."""


class CloudWatch:
    """Says what the services report: facts as keys of a log line, metrics in embedded format."""

    def log(self, message: str, **facts: object) -> None:
        """Log a stable message with facts beside it."""
        logger.info(message, extra=_safe(facts))

    def warn(self, message: str, **facts: object) -> None:
        """Log something that a person should look at when it repeats."""
        logger.warning(message, extra=_safe(facts))

    def count(self, metric: str, value: float = 1, unit: str = "Count") -> None:
        """Add to a metric; `unit` is one of CloudWatch's own words."""
        metrics.add_metric(name=metric, unit=MetricUnit(unit), value=value)


_TAKEN: Final = frozenset({*logging.makeLogRecord({}).__dict__, "message", "asctime"})


def _safe(facts: dict[str, object]) -> dict[str, object]:
    """Rename the facts whose names `logging` keeps for itself: it would raise a KeyError."""
    return {f"{key}_" if key in _TAKEN else key: value for key, value in facts.items()}
