"""Every five minutes: spread labels, deletion costs, on-demand floors, the return to spot.

A run that fails is not tried again: the next one is five minutes away.
"""

from __future__ import annotations

from typing import Any

from aws_lambda_powertools.utilities.typing import LambdaContext

from plimsoll import bootstrap
from plimsoll.observability import logger, metrics

bootstrap.make_ready(lambda services: services.placement)


@metrics.log_metrics
@logger.inject_lambda_context
def handler(event: dict[str, Any], context: LambdaContext) -> None:  # noqa: ARG001 - Lambda's own signature
    """Place every registered cluster once."""
    bootstrap.services().placement.run()
