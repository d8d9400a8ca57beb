"""The queue of snapshots that were acknowledged."""

from __future__ import annotations

from dataclasses import dataclass

import msgspec

from plimsoll.adapters.aws_errors import translated
from plimsoll.domain.errors import BadInput
from plimsoll_service.adapters.aws import ServiceAws
from plimsoll_service.domain.snapshots import Arrival


@dataclass(frozen=True, slots=True, kw_only=True)
class SqsArrivals:
    """Arrivals as SQS messages, each in the group of its tenant: one that floods waits for itself.

    https://docs.aws.amazon.com/AWSSimpleQueueService/latest/SQSDeveloperGuide/sqs-fair-queues.html
    """

    aws: ServiceAws
    url: str

    def send(self, arrival: Arrival) -> None:
        """Send one."""
        with translated("acknowledge a snapshot"):
            self.aws.sqs.send_message(
                QueueUrl=self.url,
                MessageBody=msgspec.json.encode(arrival).decode(),
                MessageGroupId=arrival.tenant,
            )


def parse(body: str) -> Arrival:
    """Return the arrival that a message is.

    Raises:
        BadInput: it is none.
    """
    try:
        return msgspec.json.decode(body, type=Arrival)
    except (msgspec.DecodeError, UnicodeError) as error:
        raise BadInput(f"the message is no arrival: {error}") from error
