"""Answers of functions that SQS invokes: which messages of a batch come back.

Such a message is no error of the function: Lambda slows a queue down after errors, and the messages of other
clusters are in it too.
https://docs.aws.amazon.com/lambda/latest/dg/services-sqs-errorhandling.html
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from plimsoll.observability import logger


def failures(records: Iterable[dict[str, Any]]) -> dict[str, Any]:
    """Return the answer that leaves these records to their queue; Lambda deletes the others."""
    # An empty list means that all messages succeeded. An unknown
    # id would make Lambda return the whole batch to the queue.
    # https://docs.aws.amazon.com/lambda/latest/dg/services-sqs-errorhandling.html
    return {"batchItemFailures": [{"itemIdentifier": r["messageId"]} for r in records]}


def each(
    event: dict[str, Any],
    work: Callable[[dict[str, Any]], None],
    failed: str,
    facts: Callable[[dict[str, Any], Exception], dict[str, object]] = lambda *_: {},
) -> dict[str, Any]:
    """Work on each record by itself, and leave those that failed to their queue.

    Args:
        event: of Lambda.
        work: handles one record. Whatever it raises is that record's alone.
        failed: the message to log of one that raised.
        facts: returns what to log beside it.
    """
    left = []
    for record in event["Records"]:
        try:
            work(record)
        except Exception as error:  # noqa: BLE001 - whatever it is, it must not take its neighbours along
            logger.exception(
                failed, extra={"sqs_message": record["messageId"], **facts(record, error)}
            )
            left.append(record)
    return failures(left)
