"""One message for each registered cluster, every minute for its resync and every hour for its pre-flight; and canaries.

A run that fails is not tried again: the next one is a minute or an hour away, and an alarm counts the resyncs
that end well.
"""

from __future__ import annotations

from typing import Any

from aws_lambda_powertools.utilities.typing import LambdaContext

from plimsoll import bootstrap
from plimsoll.domain.notices import SCHEDULED_CANARY
from plimsoll.observability import logger, metrics

bootstrap.make_ready(lambda services: services.resync_schedule)


@metrics.log_metrics
@logger.inject_lambda_context
def handler(event: dict[str, Any], context: LambdaContext) -> None:  # noqa: ARG001 - Lambda's own signature
    """Send the canary where the schedule says that, else the requests of this minute or of this hour."""
    if event.get("ask") == "canary":
        bootstrap.canaries().send(SCHEDULED_CANARY)
    else:
        bootstrap.services().resync_schedule.run(preflight=event.get("ask") == "preflight")
