"""SQS `arrivals` -> snapshots worked in: the newest of each cluster, and its rollups.

Whatever fails in a way that may pass comes back after its visibility timeout. What its agent made wrong is
counted and dropped: an agent may do that at will. The rest is set aside with its reason. Work stops well before the function's time is over: what Lambda kills comes back
whole, and what was done is done again.
"""

from __future__ import annotations

from typing import Any, Final

from aws_lambda_powertools.utilities.typing import LambdaContext

from functions import sqs_batch
from plimsoll.domain.errors import Discardable, Permanent, PlimsollError
from plimsoll.observability import logger, metrics
from plimsoll_service import bootstrap
from plimsoll_service.adapters.queues import parsed
from plimsoll_service.domain.metrics import ServiceMetric
from plimsoll_service.domain.snapshots import Arrival

RESERVE_MILLISECONDS: Final = 10_000
"""What one snapshot may take, with a cold start of its reads."""
PAUSES: Final = (2, 5, 15, 30, 60, 120, 300)
"""Seconds until each next attempt; the last one repeats."""


@metrics.log_metrics
@logger.inject_lambda_context
def handler(event: dict[str, Any], context: LambdaContext) -> dict[str, Any]:
    """Work a batch in, and name what must come back."""
    return sqs_batch.failures(
        record
        for record in event["Records"]
        # A record left for lack of time is delivered again, and counts as one more delivery.
        if context.get_remaining_time_in_millis() < RESERVE_MILLISECONDS or not _is_done(record)
    )


def _is_done(record: dict[str, Any]) -> bool:
    """Whether a record was worked in, dropped or set aside."""
    try:
        arrival = parsed(record["body"], Arrival)
        newest = bootstrap.ingest().work(arrival)
    # Discardable is also Permanent, and must be caught first: an agent could fill the dead-letter queue at will.
    except Discardable as error:
        logger.warning("snapshot refused", extra={"because": str(error)})
        metrics.add_metric(ServiceMetric.SNAPSHOTS_REFUSED, "Count", 1)
        return True
    except Permanent as error:
        return _is_set_aside(record, error)
    except Exception as error:  # noqa: BLE001 - whatever it is, it must not take its neighbours along
        _let_come_back(record, error)
        return False
    logger.info(
        "snapshot worked in",
        extra={
            "cluster": arrival.cluster,
            "epoch": arrival.epoch,
            "sequence": arrival.sequence,
            "newest": newest,
        },
    )
    return True


def _let_come_back(record: dict[str, Any], error: Exception) -> None:
    """Let a record come back after a pause that grows: sooner than its visibility timeout."""
    attempts = int(record["attributes"]["ApproximateReceiveCount"])
    seconds = PAUSES[min(attempts, len(PAUSES)) - 1]
    logger.warning(
        "snapshot comes back",
        extra={"sqs_message": record["messageId"], "seconds": seconds},
        exc_info=error,
    )
    try:
        bootstrap.arrivals().come_back(record["receiptHandle"], seconds=seconds)
    except PlimsollError as unheard:  # the visibility timeout remains
        logger.warning("snapshot left to its queue", exc_info=unheard)


def _is_set_aside(record: dict[str, Any], error: Permanent) -> bool:
    logger.error("snapshot set aside", extra={"sqs_message": record["messageId"]}, exc_info=error)
    try:
        bootstrap.arrivals().set_aside(
            record["body"],
            reason=f"{type(error).__name__}: {error}",
            message_id=record["messageId"],
            attempts=int(record["attributes"]["ApproximateReceiveCount"]),
        )
    except PlimsollError as unheard:
        logger.warning("snapshot left to its queue", exc_info=unheard)
        return False
    return True
