"""The queues of wake-ups and of resyncs."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from itertools import batched
from typing import TYPE_CHECKING, Final, NotRequired, TypedDict

from plimsoll.adapters.aws_errors import translated
from plimsoll.domain.errors import Temporary

if TYPE_CHECKING:
    from mypy_boto3_sqs.type_defs import (
        MessageAttributeValueTypeDef,
        SendMessageBatchRequestEntryTypeDef,
    )

    from plimsoll.adapters.aws import Aws
    from plimsoll.domain.registry import ResyncRequest

BATCH_MESSAGES: Final = 10
"""The most that one SendMessageBatch takes."""
TRACEPARENT: Final = "traceparent"
"""The message attribute by which a trace goes on: https://www.w3.org/TR/trace-context/"""


class Message(TypedDict):
    """A message as SQS takes it."""

    MessageBody: str
    DelaySeconds: NotRequired[int]
    MessageGroupId: NotRequired[str]
    MessageAttributes: NotRequired[Mapping[str, MessageAttributeValueTypeDef]]


class SqsWakeUps:
    """Wake-ups as SQS messages `{"cluster": NAME}` with DelaySeconds (at most 900)."""

    def __init__(self, aws: Aws, queue_url: str) -> None:
        self._aws = aws
        self._queue_url = queue_url

    def send(self, cluster: str, delays: Sequence[int], traceparent: str | None = None) -> None:
        """Send one wake-up for each delay, in seconds; the traceparent becomes an attribute of each.

        Raises:
            Temporary: some were not taken. Sending all again is harmless: wake-ups are idempotent.
        """
        # SQS delivers at least once and in any order: a message names the cluster, never an action.
        # https://docs.aws.amazon.com/AWSSimpleQueueService/latest/SQSDeveloperGuide/standard-queues-at-least-once-delivery.html
        message: Message = {"MessageBody": json.dumps({"cluster": cluster})}
        if traceparent is not None:
            message["MessageAttributes"] = {
                TRACEPARENT: {"DataType": "String", "StringValue": traceparent}
            }
        messages: list[Message] = [{**message, "DelaySeconds": delay} for delay in delays]
        send_all(self._aws, self._queue_url, messages, f"wake-ups for cluster {cluster}")


class SqsResyncs:
    """Resyncs as SQS messages, one for each cluster."""

    def __init__(self, aws: Aws, queue_url: str) -> None:
        self._aws = aws
        self._queue_url = queue_url

    def send(self, requests: Sequence[ResyncRequest]) -> None:
        """Send one message for each request.

        Raises:
            Temporary: some were not taken; these clusters have their next resync in a minute.
        """
        messages: list[Message] = [{"MessageBody": each.message()} for each in requests]
        send_all(self._aws, self._queue_url, messages, "resyncs")


def send_all(aws: Aws, queue_url: str, messages: Sequence[Message], what: str) -> None:
    """Send messages in batches; every batch is tried.

    Raises:
        Temporary: some were not taken.
    """
    failed: list[str] = []
    for batch in batched(messages, BATCH_MESSAGES, strict=False):
        entries: list[SendMessageBatchRequestEntryTypeDef] = [
            {"Id": str(i), **message}  # type: ignore[typeddict-item] # a Message has no more keys
            for i, message in enumerate(batch)
        ]
        with translated(f"send {what}"):
            answer = aws.sqs.send_message_batch(QueueUrl=queue_url, Entries=entries)
        # The batch succeeds as a call while single entries fail.
        failed += [f"{e['Code']}: {e.get('Message', '')}" for e in answer.get("Failed", [])]
    if failed:
        raise Temporary(f"{len(failed)} of {len(messages)} {what} were not taken: {failed[0]}")
