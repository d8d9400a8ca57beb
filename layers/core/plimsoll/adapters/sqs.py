"""The queue of wake-ups."""

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
        failed: list[str] = []
        for batch in batched(delays, BATCH, strict=False):
            entries: list[SendMessageBatchRequestEntryTypeDef] = [
                {"Id": str(i), "MessageBody": body, "DelaySeconds": delay}
                for i, delay in enumerate(batch)
            ]
            with translated(f"send wake-ups for cluster {cluster}"):
                answer = self._aws.sqs.send_message_batch(QueueUrl=self._queue_url, Entries=entries)
            # The batch succeeds as a call while single entries fail.
            failed += [f"{e['Code']}: {e.get('Message', '')}" for e in answer.get("Failed", [])]
        if failed:
            raise Temporary(
                f"{len(failed)} of {len(delays)} wake-ups for cluster {cluster} were not taken: "
                f"{failed[0]}"
            )
