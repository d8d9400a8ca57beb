"""SQS `notices` -> cordon, taint and record; then the ticks that wake the drain.

What may work later comes back within seconds, since a notice lives for two minutes. What no
attempt can mend, and what is still failing at its last attempt, is set aside with its reason.
"""

from __future__ import annotations

from typing import Any, Final

from aws_lambda_powertools.utilities.batch.types import PartialItemFailureResponse
from aws_lambda_powertools.utilities.data_classes import SQSEvent, event_source
from aws_lambda_powertools.utilities.data_classes.sqs_event import SQSRecord
from aws_lambda_powertools.utilities.typing import LambdaContext

from plimsoll import bootstrap
from plimsoll.domain.errors import Permanent, Temporary
from plimsoll.observability import Metric, logger, metrics

LAST_ATTEMPT: Final = 14
"""The queue's maxReceiveCount: after this attempt SQS would move the notice without a reason."""
RETRY_SECONDS: Final = (1, 2, 3, 5, 8, 15)
"""Until each next attempt; the last one repeats, so that 14 attempts span more than two minutes."""


@metrics.log_metrics
@logger.inject_lambda_context
@event_source(data_class=SQSEvent)
def handler(event: SQSEvent, context: LambdaContext) -> PartialItemFailureResponse:  # noqa: ARG001 - Lambda's own signature
    """Handle the batch as one, and name the notices that must come back."""
    records = list(event.records)
    outcomes = bootstrap.notices().receive([record.body for record in records])
    failed = [
        record.message_id
        for record, outcome in zip(records, outcomes, strict=True)
        if isinstance(outcome, Exception) and _comes_back(record, outcome)
    ]
    return {"batchItemFailures": [{"itemIdentifier": message_id} for message_id in failed]}


def _comes_back(record: SQSRecord, error: Exception) -> bool:
    """Say whether a notice is to be tried again; set it aside where that is over or useless."""
    attempts = int(record.attributes.approximate_receive_count)
    if isinstance(error, Permanent) or attempts >= LAST_ATTEMPT:
        _set_aside(record, attempts, error)
        return False
    logger.warning("notice comes back", extra={"attempts": attempts, "reason": repr(error)})
    wanted = error.retry_after if isinstance(error, Temporary) else None
    pause = RETRY_SECONDS[min(attempts, len(RETRY_SECONDS)) - 1]
    bootstrap.notices_queue().come_back(
        record.receipt_handle, seconds=pause if wanted is None else min(30, max(1, int(wanted)))
    )
    return True


def _set_aside(record: SQSRecord, attempts: int, error: Exception) -> None:
    reason = f"{type(error).__name__}: {error}"
    logger.error("notice set aside", exc_info=error, extra={"sqs_message": record.message_id})
    bootstrap.notices_queue().set_aside(
        record.body, reason=reason, message_id=record.message_id, attempts=attempts
    )
    metrics.add_metric(name=Metric.NOTICES_POISONED, unit="Count", value=1)
