"""The queues of the service: snapshots that were acknowledged, and requests for advice.

Messages are in the group of their tenant: one that floods waits for itself.
https://docs.aws.amazon.com/AWSSimpleQueueService/latest/SQSDeveloperGuide/sqs-fair-queues.html
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import msgspec

from plimsoll.adapters.aws_errors import translated
from plimsoll.adapters.sqs import Message, send_all
from plimsoll.domain.errors import BadInput
from plimsoll_service.adapters.aws import ServiceAws
from plimsoll_service.domain.advice import AdviceRequest
from plimsoll_service.domain.snapshots import Arrival


@dataclass(frozen=True, slots=True, kw_only=True)
class SqsArrivals:
    """Arrivals as SQS messages."""

    aws: ServiceAws
    url: str

    def send(self, arrival: Arrival) -> None:
        """Send one."""
        with translated("acknowledge a snapshot"):
            self.aws.sqs.send_message(QueueUrl=self.url, **_message(arrival))


@dataclass(frozen=True, slots=True, kw_only=True)
class SqsAdvice:
    """Requests for advice as SQS messages.

    The queue delays them by seconds, so that of a burst the first one answers the others.
    """

    aws: ServiceAws
    url: str

    def send(self, requests: Sequence[AdviceRequest]) -> None:
        """Send them."""
        send_all(self.aws, self.url, [_message(each) for each in requests], "requests for advice")


def parsed[M: (AdviceRequest, Arrival)](body: str, kind: type[M]) -> M:
    """Return what a message is.

    Raises:
        BadInput: it is of another kind.
    """
    try:
        return msgspec.json.decode(body, type=kind)
    except (msgspec.DecodeError, UnicodeError) as error:
        raise BadInput(f"the message is no {kind.__name__}: {error}") from error


def _message(sent: AdviceRequest | Arrival) -> Message:
    return {"MessageBody": msgspec.json.encode(sent).decode(), "MessageGroupId": sent.tenant}
