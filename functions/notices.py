"""SQS `notices` -> cordon, taint and record; then the wake-ups of the drain.

Whether a notice that failed comes back, and when, is decided by `plimsoll.services.retry_policy`. What is
given up is set aside here, with its reason: SQS itself would move it without one. Powertools' batch
processor is left out: it wants one record at a time, and every cold start would wait for its import.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any

from aws_lambda_powertools.utilities.typing import LambdaContext

from functions import sqs_batch
from plimsoll import bootstrap
from plimsoll.domain.errors import PlimsollError
from plimsoll.domain.reports import Metric
from plimsoll.observability import CloudWatch, logger, metrics
from plimsoll.services.retry_policy import NOTICES

bootstrap.make_ready(lambda services: services.notices)


@metrics.log_metrics
@logger.inject_lambda_context
def handler(event: dict[str, Any], context: LambdaContext) -> dict[str, Any]:  # noqa: ARG001 - Lambda's own signature
    """Handle a batch of notices, and name those that must come back."""
    records = event["Records"]
    logger.info("batch received", extra={"notices": len(records)})
    bodies = [record["body"] for record in records]
    try:
        errors = bootstrap.services().notices.receive(bodies)
    except Exception as error:  # noqa: BLE001 - whatever it is, it must not take its neighbours along
        # Notices that were handled before the fault are handled again, which changes nothing.
        errors = [error] if len(bodies) == 1 else _one_by_one(bodies, error)
    return sqs_batch.failures(
        record
        for record, error in zip(records, errors, strict=True)
        if error is not None and _comes_back(record, error)
    )


def _one_by_one(bodies: Sequence[str], error: Exception) -> Sequence[Exception | None]:
    logger.warning("batch taken apart", exc_info=error)
    errors: list[Exception | None] = []
    for body in bodies:
        try:
            errors += bootstrap.services().notices.receive([body])
        except Exception as its_own:  # noqa: BLE001 - as above
            errors.append(its_own)
    return errors


def _comes_back(record: dict[str, Any], error: Exception) -> bool:
    """Let a notice come back after its pause, or set it aside; return whether it comes back."""
    # SQS counts every delivery, also those whose invocation died.
    # https://docs.aws.amazon.com/AWSSimpleQueueService/latest/APIReference/API_ReceiveMessage.html
    attempts = int(record["attributes"]["ApproximateReceiveCount"])
    seconds = NOTICES.pause_seconds(error, attempts=attempts)
    try:
        if seconds is not None:
            logger.warning("notice comes back", extra={"attempts": attempts}, exc_info=error)
            CloudWatch().count(Metric.NOTICE_AGE_AT_RETRY, _age_seconds(record))
            # Lambda deletes the messages that the answer does not name,
            # and leaves the others alone: this visibility timeout stands.
            bootstrap.notices_queue().come_back(record["receiptHandle"], seconds=seconds)
            return True
        logger.error("notice set aside", extra={"sqs_message": record["messageId"]}, exc_info=error)
        # The copy is in the dead-letter queue before Lambda deletes the
        # message: an invocation that dies in between leaves two copies.
        bootstrap.notices_queue().set_aside(
            record["body"],
            reason=f"{type(error).__name__}: {error}",
            message_id=record["messageId"],
            attempts=attempts,
        )
    except PlimsollError as unheard:  # SQS did not listen; the visibility timeout remains
        logger.warning("notice left to its queue", exc_info=unheard)
        return True
    CloudWatch().count(Metric.NOTICES_DEAD_LETTERED)
    return False


def _age_seconds(record: dict[str, Any]) -> float:
    return max(0.0, time.time() - int(record["attributes"]["SentTimestamp"]) / 1000)
