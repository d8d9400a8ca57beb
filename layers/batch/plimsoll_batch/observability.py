"""Metrics of the queues in CloudWatch, in embedded format."""

from __future__ import annotations

from collections.abc import Sequence

from aws_lambda_powertools import single_metric
from aws_lambda_powertools.metrics import MetricUnit

from plimsoll.observability import NAMESPACE, metrics
from plimsoll_batch.domain.queue_metrics import QueueMeasure


class CloudWatchQueues:
    """Implements `plimsoll_batch.services.ports.QueueMeter`: a line on standard output for each value."""

    def measure(self, cluster: str, measures: Sequence[QueueMeasure]) -> None:
        """Write values of the queues of a cluster."""
        for each in measures:
            with single_metric(
                name=each.metric,
                unit=MetricUnit(each.metric.unit),
                value=each.value,
                namespace=NAMESPACE,
                default_dimensions={"service": metrics.service or ""},
            ) as one:
                one.add_dimension("cluster", cluster)
                one.add_dimension("queue", each.queue)
                if each.reason is not None:
                    one.add_dimension("reason", each.reason)
