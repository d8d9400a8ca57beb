"""SQS `wake-ups` of the queues -> the queues of one cluster are planned for most of a minute.

A wake-up that fails is not tried again: the next one is a minute away. One that finds another planner at
work ends at once.
"""

from __future__ import annotations

import json
from typing import Any, Final

from aws_lambda_powertools.utilities.typing import LambdaContext

from plimsoll.observability import logger, metrics
from plimsoll_batch import bootstrap

PLAN_SECONDS: Final = 52.0
"""Less than from one wake-up to the next, so that each finds the Lease free."""
END_SECONDS: Final = 4.0
"""Kept of the function's time for what a cycle is about, and for the Lease."""


@metrics.log_metrics
@logger.inject_lambda_context
def handler(event: dict[str, Any], context: LambdaContext) -> dict[str, Any]:
    """Plan for each wake-up, and name those that failed.

    Such a message is no error of the function: Lambda slows a queue down after errors, and the other
    clusters' messages are in it too.
    """
    failed = []
    for record in event["Records"]:
        left = context.get_remaining_time_in_millis() / 1000 - END_SECONDS
        try:
            bootstrap.queues().run(
                json.loads(record["body"])["cluster"],
                holder=context.aws_request_id,
                seconds=min(PLAN_SECONDS, left),
            )
        except Exception:  # noqa: BLE001 - whatever it is, it is this cluster's alone
            logger.exception("queues not planned", extra={"sqs_message": record["messageId"]})
            failed.append(record)
    return {"batchItemFailures": [{"itemIdentifier": r["messageId"]} for r in failed]}
