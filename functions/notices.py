"""SQS `notices` -> cordon, taint and record; then the wake-ups that wake the drain.

What may work later comes back within seconds, since a notice lives for two minutes; so does what was
refused, because an API server that has just started refuses everybody (403) until it has read who
may do what. What no attempt can mend, and what still fails at its last attempt, is set aside with
its reason: SQS itself would move it without a word. Powertools' batch processor is left out: it wants one record
at a time, and every cold start would wait for its import.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from aws_lambda_powertools.utilities.typing import LambdaContext

from plimsoll import bootstrap
from plimsoll.domain.errors import Permanent, PlimsollError, Refused, Temporary
from plimsoll.observability import Metric, logger, metrics

LAST_ATTEMPT: Final = 14
"""The queue's maxReceiveCount."""
RETRY_SECONDS: Final = (1, 2, 3, 5, 8, 15)
"""Until each next attempt; the last one repeats, so that all attempts span more than two minutes."""
MOST_SECONDS: Final = 30
"""However much patience the other side asks for."""


bootstrap.make_ready()


@metrics.log_metrics
@logger.inject_lambda_context
def handler(event: dict[str, Any], context: LambdaContext) -> dict[str, Any]:  # noqa: ARG001 - Lambda's own signature
    """Handle a batch of notices, and name those that must come back."""
    records = event["Records"]
    logger.info("batch received", extra={"notices": len(records)})
    failed = []
    for record, answer in zip(records, _answers([r["body"] for r in records]), strict=True):
        try:
            if _must_come_back(record, answer):
                failed.append(record)
        except PlimsollError as error:  # SQS did not listen; the visibility timeout remains
            logger.warning("notice left to its queue", exc_info=error)
            failed.append(record)
    return {"batchItemFailures": [{"itemIdentifier": r["messageId"]} for r in failed]}


def _answers(bodies: Sequence[str]) -> Sequence[object]:
    """Return, in order, what became of each body; an exception where it was not handled."""
    try:
        return bootstrap.notices().receive(bodies)
    except Exception as error:  # noqa: BLE001 - whatever it is, it must not take its neighbours along
        if len(bodies) == 1:
            return [error]
        logger.warning("batch taken apart", exc_info=error)
        return [_answers([body])[0] for body in bodies]


def _must_come_back(record: dict[str, Any], answer: object) -> bool:
    if not isinstance(answer, Exception):
        return False
    attempts = int(record["attributes"]["ApproximateReceiveCount"])
    hopeless = isinstance(answer, Permanent) and not isinstance(answer, Refused)
    if hopeless or attempts >= LAST_ATTEMPT:
        logger.error(
            "notice set aside", extra={"sqs_message": record["messageId"]}, exc_info=answer
        )
        bootstrap.notices_queue().set_aside(
            record["body"],
            reason=f"{type(answer).__name__}: {answer}",
            message_id=record["messageId"],
            attempts=attempts,
        )
        metrics.add_metric(name=Metric.NOTICES_DEAD_LETTERED, unit="Count", value=1)
        return False
    logger.warning("notice comes back", extra={"attempts": attempts}, exc_info=answer)
    bootstrap.notices_queue().come_back(record["receiptHandle"], seconds=_pause(answer, attempts))
    return True


def _pause(error: Exception, attempts: int) -> int:
    wanted = error.retry_after if isinstance(error, Temporary) else None
    if wanted is None:
        return RETRY_SECONDS[min(attempts, len(RETRY_SECONDS)) - 1]
    return min(MOST_SECONDS, max(1, int(wanted)))
