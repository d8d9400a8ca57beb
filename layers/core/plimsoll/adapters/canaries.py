"""Canaries on the default event bus, signed by the secret of their stack."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from plimsoll.adapters.aws_errors import translated
from plimsoll.adapters.secrets import SecretToken
from plimsoll.domain.errors import Refused
from plimsoll.domain.notices import CANARY_DETAIL_TYPE, CANARY_SOURCE, canary_word

if TYPE_CHECKING:
    from plimsoll.adapters.aws import Aws
    from plimsoll.services.ports import Clock


class Canaries:
    """Puts canaries on the bus."""

    def __init__(self, aws: Aws, secret: str, clock: Clock) -> None:
        self._aws = aws
        self._clock = clock
        self._secret = SecretToken(aws, secret, clock)

    def key(self) -> str:
        """Return the secret that signs canaries.

        Raises:
            PlimsollError: it cannot be read.
        """
        return self._secret.get()

    def send(self, name: str) -> None:
        """Put a canary of that name on the bus.

        Raises:
            Refused: the bus did not take it.
            PlimsollError: the secret cannot be read.
        """
        detail = json.dumps({"word": canary_word(name, self.key(), self._clock.now())})
        with translated("put a canary on the event bus"):
            answer = self._aws.events.put_events(
                Entries=[
                    {"Source": CANARY_SOURCE, "DetailType": CANARY_DETAIL_TYPE, "Detail": detail}
                ]
            )
        # The call succeeds even if the bus did not take the entry.
        # https://docs.aws.amazon.com/eventbridge/latest/userguide/eb-putevents.html
        if answer["FailedEntryCount"]:
            (entry,) = answer["Entries"]
            raise Refused(
                f"the event bus did not take the canary: {entry.get('ErrorCode')}: "
                f"{entry.get('ErrorMessage')}"
            )
