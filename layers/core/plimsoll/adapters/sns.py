"""The topic that is told what interruptions cost."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from plimsoll.adapters.aws_errors import translated

if TYPE_CHECKING:
    from plimsoll.adapters.aws import Aws


class SnsAnnouncer:
    """Implements `plimsoll.services.ports.Announcer`.

    Mail gets the text. Chat clients, which subscribe by HTTPS, take only messages of this form:
    https://docs.aws.amazon.com/chatbot/latest/adminguide/custom-notifs.html

    Args:
        aws: The clients of the stack's region.
        topic: The topic's ARN; empty: nobody is told.
    """

    def __init__(self, aws: Aws, topic: str) -> None:
        self._aws = aws
        self._topic = topic

    def tell(self, subject: str, text: str) -> None:
        """Publish one message.

        Raises:
            PlimsollError: SNS did not take it.
        """
        if not self._topic:
            return
        content = {"textType": "client-markdown", "title": subject, "description": text}
        chat = {"version": "1.0", "source": "custom", "content": content}
        with translated("announce what interruptions cost"):
            self._aws.sns.publish(
                TopicArn=self._topic,
                Subject=subject,
                Message=json.dumps({"default": text, "https": json.dumps(chat)}),
                MessageStructure="json",
            )
