"""The queue of notices, as the function that reads it sees it: try again soon, or set aside.

Lambda's own answer to a failed message is the queue's whole visibility time, and a message that
SQS moves to the dead-letter queue carries no word of why. Both are done here instead.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from plimsoll.adapters.aws_errors import translated

if TYPE_CHECKING:
    from plimsoll.adapters.aws import Aws

MAX_REASON_BYTES: Final = 1024
"""Attributes count towards the size of a message; the whole story is in the log."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NoticesQueue:
    """The notices queue and its dead-letter queue."""

    aws: Aws
    url: str
    dead_url: str

    def come_back(self, receipt: str, *, seconds: int) -> None:
        """Show a message again after `seconds`, which is sooner than its visibility timeout.

        https://docs.aws.amazon.com/AWSSimpleQueueService/latest/SQSDeveloperGuide/sqs-visibility-timeout.html
        """
        with translated("let a notice come back"):
            self.aws.sqs.change_message_visibility(
                QueueUrl=self.url, ReceiptHandle=receipt, VisibilityTimeout=seconds
            )

    def set_aside(self, body: str, *, reason: str, message_id: str, attempts: int) -> None:
        """Put a copy into the dead-letter queue, with the reason beside it.

        The body stays byte for byte what it was, so that moving it back needs no unwrapping.
        """
        with translated("set a notice aside"):
            self.aws.sqs.send_message(
                QueueUrl=self.dead_url,
                MessageBody=body,
                MessageAttributes={
                    "reason": {"DataType": "String", "StringValue": _shortened(reason)},
                    "message": {"DataType": "String", "StringValue": message_id},
                    "attempts": {"DataType": "Number", "StringValue": str(attempts)},
                },
            )


def _shortened(reason: str) -> str:
    """Keep what SQS takes in an attribute: not empty, no control characters, not long."""
    printable = "".join(c if c.isprintable() else " " for c in reason).strip() or "unknown"
    return printable.encode()[:MAX_REASON_BYTES].decode(errors="ignore")
