"""Every minute: one wake-up for the queues of each registered cluster that may be written to.

A run that fails is not tried again: the next one is a minute away.
"""

from __future__ import annotations

from typing import Any

from aws_lambda_powertools.utilities.typing import LambdaContext

from plimsoll.observability import logger
from plimsoll_batch import bootstrap


@logger.inject_lambda_context
def handler(event: dict[str, Any], context: LambdaContext) -> None:  # noqa: ARG001 - Lambda's own signature
    """Wake the queues of all clusters."""
    bootstrap.queues().wake()
