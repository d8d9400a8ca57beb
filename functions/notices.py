"""SQS `notices` -> cordon, taint and record; then the ticks that wake the drain.

What may work later comes back within seconds, since a notice lives for two minutes. What no
attempt can mend, and what is still failing at its last attempt, is set aside with its reason.
"""

from __future__ import annotations

from typing import Any, Final

from aws_lambda_powertools.utilities.batch import (
    BatchProcessor,
    EventType,
    process_partial_response,
)
from aws_lambda_powertools.utilities.batch.types import PartialItemFailureResponse
from aws_lambda_powertools.utilities.data_classes.sqs_event import SQSRecord
from aws_lambda_powertools.utilities.typing import LambdaContext

from plimsoll import bootstrap
from plimsoll.domain.errors import Permanent, Temporary
from plimsoll.observability import Metric, logger, metrics

LAST_ATTEMPT: Final = 14
"""The queue's maxReceiveCount: after this attempt SQS would move the notice without a reason."""
RETRY_SECONDS: Final = (1, 2, 3, 5, 8, 15)
"""Until each next attempt; the last one repeats, so that 14 attempts span more than two minutes."""
ROOM_MS: Final = 6_000
"""No record is begun with less time left: a timeout would cost the whole batch half a minute."""

processor: Final = BatchProcessor(event_type=EventType.SQS, raise_on_entire_batch_failure=False)


@metrics.log_metrics
@logger.inject_lambda_context
def handler(event: dict[str, Any], context: LambdaContext) -> PartialItemFailureResponse:
    """Handle each notice of the batch, and name those that must come back."""
    answer = process_partial_response(
        event=event, record_handler=handle, processor=processor, context=context
    )
    try:
        bootstrap.notices().flush()
    except Temporary as error:
        # The nodes are cordoned, but nobody is awake: handling a notice twice does no harm.
        logger.warning("ticks not sent", extra={"reason": str(error)})
        return {"batchItemFailures": [{"itemIdentifier": r["messageId"]} for r in event["Records"]]}
    return answer


def handle(record: SQSRecord, lambda_context: LambdaContext) -> None:
    """Handle one notice."""
    attempts = int(record.attributes.approximate_receive_count)
    try:
        _require_room(lambda_context)
        bootstrap.notices().receive(record.body)
    except Permanent as error:
        _set_aside(record, attempts, error)
    except Exception as error:
        if attempts >= LAST_ATTEMPT:
            _set_aside(record, attempts, error)
            return
        _come_back(record, attempts, error)
        raise


def _require_room(context: LambdaContext) -> None:
    if context.get_remaining_time_in_millis() < ROOM_MS:
        raise Temporary("no time left in this batch")


def _set_aside(record: SQSRecord, attempts: int, error: Exception) -> None:
    reason = f"{type(error).__name__}: {error}"
    logger.exception("notice set aside", extra={"sqs_message": record.message_id})
    bootstrap.notices_queue().set_aside(
        record.body, reason=reason, message_id=record.message_id, attempts=attempts
    )
    metrics.add_metric(name=Metric.NOTICES_POISONED, unit="Count", value=1)


def _come_back(record: SQSRecord, attempts: int, error: Exception) -> None:
    logger.warning("notice comes back", extra={"attempts": attempts}, exc_info=error)
    wanted = error.retry_after if isinstance(error, Temporary) else None
    pause = RETRY_SECONDS[min(attempts, len(RETRY_SECONDS)) - 1]
    bootstrap.notices_queue().come_back(
        record.receipt_handle, seconds=pause if wanted is None else min(30, max(1, int(wanted)))
    )
