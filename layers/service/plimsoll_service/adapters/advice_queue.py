"""The queue of requests for advice."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import msgspec

from plimsoll.adapters.sqs import Message, send_all
from plimsoll.domain.errors import BadInput
from plimsoll_service.adapters.aws import ServiceAws
from plimsoll_service.domain.advice import AdviceRequest


@dataclass(frozen=True, slots=True, kw_only=True)
class SqsAdvice:
    """Requests for advice as SQS messages, each in the group of its tenant.

    The queue delays them by seconds, so that of a burst the first one answers the others.
    """

    aws: ServiceAws
    url: str

    def send(self, requests: Sequence[AdviceRequest]) -> None:
        """Send them."""
        messages: list[Message] = [
            {"MessageBody": msgspec.json.encode(each).decode(), "MessageGroupId": each.tenant}
            for each in requests
        ]
        send_all(self.aws, self.url, messages, "requests for advice")


def parse(body: str) -> AdviceRequest:
    """Return the request that a message is.

    Raises:
        BadInput: it is none.
    """
    try:
        return msgspec.json.decode(body, type=AdviceRequest)
    except (msgspec.DecodeError, UnicodeError) as error:
        raise BadInput(f"the message is no request for advice: {error}") from error
