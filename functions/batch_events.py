"""SQS `events` of the queues -> wake-ups: a notice about a node, or a Job that an agent saw change.

An event that fails comes back after a few seconds, and for two minutes at most; the schedule makes up for it.
"""

from __future__ import annotations

from typing import Any

from aws_lambda_powertools.utilities.typing import LambdaContext

from functions import sqs_batch
from plimsoll.observability import logger
from plimsoll_batch import bootstrap


@logger.inject_lambda_context
def handler(event: dict[str, Any], context: LambdaContext) -> dict[str, Any]:  # noqa: ARG001 - Lambda's own signature
    """Wake the clusters of a batch of events, and name the events that must come back."""
    records = event["Records"]
    errors = bootstrap.wake_ups().receive([record["body"] for record in records])
    failed = []
    for record, error in zip(records, errors, strict=True):
        if error is not None:
            logger.warning("event comes back", exc_info=error)
            failed.append(record)
    return sqs_batch.failures(failed)
