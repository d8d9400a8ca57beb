"""Every minute: interrupted instances of which no event told, the node index, clusters to wake.

A resync that fails is not tried again: the next one is a minute away, and an alarm counts those
that end well.
"""

from __future__ import annotations

from typing import Any

from aws_lambda_powertools.utilities.typing import LambdaContext

from plimsoll import bootstrap
from plimsoll.domain.metrics import Metric
from plimsoll.observability import CloudWatch, logger, metrics

bootstrap.make_ready()


@metrics.log_metrics
@logger.inject_lambda_context
def handler(event: dict[str, Any], context: LambdaContext) -> None:  # noqa: ARG001 - Lambda's own signature
    """Run one resync over every registered cluster."""
    bootstrap.resync().run()
    CloudWatch().count(Metric.RESYNC_FINISHED)
