"""The default event bus of the account, on which the interruption path listens."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass

from plimsoll.adapters.aws_errors import translated
from plimsoll.domain.errors import Temporary
from plimsoll.domain.notices import taint
from plimsoll_service.adapters.aws import ServiceAws


@dataclass(frozen=True, slots=True, kw_only=True)
class EventBridgeBus:
    """Puts events of the service's own source."""

    aws: ServiceAws

    def forward(self, agent: str, instances: Sequence[str]) -> None:
        """Say that an agent saw interruption taints."""
        detail = json.dumps({"agent": agent, "instances": list(instances)})
        with translated("forward interruption taints"):
            answer = self.aws.events.put_events(
                Entries=[
                    {"Source": taint.SOURCE, "DetailType": taint.DETAIL_TYPE, "Detail": detail}
                ]
            )
        # The call succeeds although the entry does not:
        # https://docs.aws.amazon.com/eventbridge/latest/APIReference/API_PutEvents.html
        if answer["FailedEntryCount"]:
            raise Temporary(f"forward interruption taints: {answer['Entries'][0]['ErrorCode']}")
