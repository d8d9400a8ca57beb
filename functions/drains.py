"""SQS `ticks` -> one slice of a cluster's drain.

A tick says only which cluster may have work. Ticks come in series and in doubles, so one that
fails is left to its queue: others are on the way.
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
from plimsoll.observability import logger, metrics

SLICE_SECONDS: Final = 19.0
"""Short, so that killing a slice loses little."""
END_SECONDS: Final = 4.0
"""Kept back from the function's time for handing back the lease and writing the report."""

processor: Final = BatchProcessor(event_type=EventType.SQS, raise_on_entire_batch_failure=False)


@metrics.log_metrics
@logger.inject_lambda_context
def handler(event: dict[str, Any], context: LambdaContext) -> PartialItemFailureResponse:
    """Work a slice for each tick, and name those that must come back."""
    return process_partial_response(
        event=event, record_handler=handle, processor=processor, context=context
    )


def handle(record: SQSRecord, lambda_context: LambdaContext) -> None:
    """Work one slice, for as long as the invocation has time."""
    seconds_left = lambda_context.get_remaining_time_in_millis() / 1000 - END_SECONDS
    try:
        bootstrap.drains().slice(
            record.json_body["cluster"],
            holder=lambda_context.aws_request_id,
            seconds=min(SLICE_SECONDS, seconds_left),
        )
    except Exception:
        logger.exception(
            "slice failed"
        )  # a partial failure is no error of the function: say it here
        raise
