"""The queues of wake-ups and of resyncs."""

from __future__ import annotations

import json
from collections.abc import Sequence
from itertools import batched
from typing import TYPE_CHECKING, Final

from plimsoll.adapters.aws_errors import translated
from plimsoll.domain.errors import Temporary

if TYPE_CHECKING:
    from mypy_boto3_sqs.type_defs import SendMessageBatchRequestEntryTypeDef

    from plimsoll.adapters.aws import Aws
    from plimsoll.domain.resyncs import ResyncRequest

BATCH: Final = 10
"""The most that one SendMessageBatch takes."""


class SqsWakeUps:
    """Wake-ups as SQS messages `{"cluster": NAME}` with DelaySeconds (at most 900)."""

    def __init__(self, aws: Aws, queue_url: str) -> None:
        self._aws = aws
        self._queue_url = queue_url

    def send(self, cluster: str, delays: Sequence[int]) -> None:
        """Send one wake-up for each delay, in seconds.

        Raises:
            Temporary: some were not taken. Sending all again is harmless: wake-ups are idempotent.
        """
        body = json.dumps({"cluster": cluster})
        messages = [(body, delay) for delay in delays]
        _send(self._aws, self._queue_url, messages, f"wake-ups for cluster {cluster}")


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
        _send(self._aws, self._queue_url, [(each.message(), 0) for each in requests], "resyncs")


def _send(aws: Aws, queue_url: str, messages: Sequence[tuple[str, int]], what: str) -> None:
    """Send bodies with their delays in seconds; every batch is tried."""
    failed: list[str] = []
    for batch in batched(messages, BATCH, strict=False):
        entries: list[SendMessageBatchRequestEntryTypeDef] = [
            {"Id": str(i), "MessageBody": body, "DelaySeconds": delay}
            for i, (body, delay) in enumerate(batch)
        ]
        with translated(f"send {what}"):
            answer = aws.sqs.send_message_batch(QueueUrl=queue_url, Entries=entries)
        # The batch succeeds as a call while single entries fail.
        failed += [f"{e['Code']}: {e.get('Message', '')}" for e in answer.get("Failed", [])]
    if failed:
        raise Temporary(f"{len(failed)} of {len(messages)} {what} were not taken: {failed[0]}")
