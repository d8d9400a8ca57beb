"""SQS `wake-ups` -> one reconcile of a cluster's drain.

A wake-up says only which cluster may have work. One that fails is left to its queue, whatever it
failed with: see `plimsoll.services.retry_policy.WAKE_UPS`.
"""

from __future__ import annotations

import json
from functools import partial
from typing import Any, Final

from aws_lambda_powertools.utilities.typing import LambdaContext

from functions import sqs_batch
from plimsoll import bootstrap
from plimsoll.adapters.sqs import TRACEPARENT
from plimsoll.domain.fields import traceparent_of
from plimsoll.observability import logger, metrics
from plimsoll.services.retry_policy import HURRIED_SECONDS, RECONCILE_SECONDS, WAKE_UPS

END_SECONDS: Final = 4.0
"""Kept back from the function's time for releasing the Lease and writing the report."""


bootstrap.make_ready(lambda services: services.drains)


@metrics.log_metrics
@logger.inject_lambda_context
def handler(event: dict[str, Any], context: LambdaContext) -> dict[str, Any]:
    """Reconcile for each wake-up, and name those that must come back."""
    return sqs_batch.each(event, partial(_work, context=context), "reconcile failed", _comes_back)


def _comes_back(record: dict[str, Any], error: Exception) -> dict[str, object]:
    attempts = int(record["attributes"]["ApproximateReceiveCount"])
    return {"comes_back_in_seconds": WAKE_UPS.pause_seconds(error, attempts=attempts)}


def _work(record: dict[str, Any], context: LambdaContext) -> None:
    attribute = record.get("messageAttributes", {}).get(TRACEPARENT, {})
    seconds_left = context.get_remaining_time_in_millis() / 1000 - END_SECONDS
    bootstrap.services().drains.reconcile(
        json.loads(record["body"])["cluster"],
        # Each delivery of a message is another invocation: two reconciles never have the same holder.
        holder=context.aws_request_id,
        seconds=min(RECONCILE_SECONDS, seconds_left),
        hurried=min(HURRIED_SECONDS, seconds_left),
        traceparent=traceparent_of(attribute.get("stringValue")),
    )
