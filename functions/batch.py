"""SQS `wake-ups` of the queues -> the queues of one cluster are planned for most of a minute.

A wake-up that fails is not tried again: the next one is a minute away. One that finds another planner at
work ends at once.
"""

from __future__ import annotations

import json
from functools import partial
from typing import Any, Final

from aws_lambda_powertools.utilities.typing import LambdaContext

from functions import sqs_batch
from plimsoll.observability import logger, metrics
from plimsoll_batch import bootstrap
from plimsoll_batch.services.queues import PLAN_SECONDS

END_SECONDS: Final = 4.0
"""Kept of the function's time for what a cycle is about, and for the Lease."""


@metrics.log_metrics
@logger.inject_lambda_context
def handler(event: dict[str, Any], context: LambdaContext) -> dict[str, Any]:
    """Plan for each wake-up, and name those that failed."""
    return sqs_batch.each(event, partial(_plan, context=context), "queues not planned")


def _plan(record: dict[str, Any], context: LambdaContext) -> None:
    left = context.get_remaining_time_in_millis() / 1000 - END_SECONDS
    bootstrap.queues().run(
        json.loads(record["body"])["cluster"],
        holder=context.aws_request_id,
        seconds=min(PLAN_SECONDS, left),
    )
