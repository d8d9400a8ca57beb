"""Puts a canary on the default event bus, as whoever runs the command."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from plimsoll.adapters.aws_errors import translated
from plimsoll.domain.errors import Refused
from plimsoll.domain.notices.canary import DETAIL_TYPE, SOURCE

if TYPE_CHECKING:
    from plimsoll.adapters.aws import Aws


class EventBus:
    """Implements `plimsoll.services.doctor.CanaryBus`."""

    def __init__(self, aws: Aws) -> None:
        self._aws = aws

    def send(self, word: str) -> None:
        """Put a canary with that word on the bus.

        Raises:
            Refused: the bus did not take it.
        """
        detail = json.dumps({"word": word})
        with translated("put a canary on the event bus"):
            answer = self._aws.events.put_events(
                Entries=[{"Source": SOURCE, "DetailType": DETAIL_TYPE, "Detail": detail}]
            )
        if answer["FailedEntryCount"]:
            (entry,) = answer["Entries"]
            raise Refused(
                f"the event bus did not take the canary: {entry.get('ErrorCode')}: "
                f"{entry.get('ErrorMessage')}"
            )
