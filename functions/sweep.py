"""Every minute: instances that go without an event, the node index, clusters to wake.

A resync that fails is not tried again: the next one is a minute away, and an alarm counts those
that end well.
"""

from __future__ import annotations

from typing import Any

from aws_lambda_powertools.utilities.typing import LambdaContext

from plimsoll import bootstrap
from plimsoll.observability import Metric, logger, metrics

bootstrap.make_ready()


@metrics.log_metrics
@logger.inject_lambda_context
def handler(event: dict[str, Any], context: LambdaContext) -> None:  # noqa: ARG001 - Lambda's own signature
    """Run one resync over every registered cluster."""
    bootstrap.resync().run()
    metrics.add_metric(name=Metric.RESYNC_FINISHED, unit="Count", value=1)
