"""Every five minutes: one message for each enrolled cluster, which asks for advice about it.

A run that fails is not tried again: the next one is five minutes away, and an alarm counts it.
"""

from __future__ import annotations

from typing import Any

from aws_lambda_powertools.utilities.typing import LambdaContext

from plimsoll.observability import logger, metrics
from plimsoll_service import bootstrap


@metrics.log_metrics
@logger.inject_lambda_context
def handler(event: dict[str, Any], context: LambdaContext) -> None:  # noqa: ARG001 - Lambda's own signature
    """Ask for advice about every cluster."""
    logger.info("advice asked for", extra={"clusters": bootstrap.advice_schedule().run()})
