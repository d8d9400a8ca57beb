"""The default event bus of the account, on which the interruption path and the queues listen."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from plimsoll.adapters.aws_errors import translated
from plimsoll.domain.errors import Temporary
from plimsoll.domain.notices import SERVICE_SOURCE, TAINT_DETAIL_TYPE
from plimsoll.domain.registry import QUEUE_CHANGE_DETAIL_TYPE
from plimsoll_service.adapters.aws import ServiceAws

if TYPE_CHECKING:
    from mypy_boto3_events.type_defs import PutEventsRequestEntryTypeDef


@dataclass(frozen=True, slots=True, kw_only=True)
class EventBridgeBus:
    """Puts events of the service's own source."""

    aws: ServiceAws

    def forward(self, agent: str, instances: Sequence[str]) -> None:
        """Say that an agent saw interruption taints."""
        said = {"agent": agent, "instances": list(instances)}
        self._put("forward interruption taints", TAINT_DETAIL_TYPE, said)

    def queue_changed(self, agent: str) -> None:
        """Say that an agent saw a Job of a queue change."""
        self._put("forward a change of a queue", QUEUE_CHANGE_DETAIL_TYPE, {"agent": agent})

    def _put(self, what: str, detail_type: str, detail: Mapping[str, object]) -> None:
        entry: PutEventsRequestEntryTypeDef = {
            "Source": SERVICE_SOURCE,
            "DetailType": detail_type,
            "Detail": json.dumps(detail),
        }
        with translated(what):
            answer = self.aws.events.put_events(Entries=[entry])
        # The call succeeds although the entry does not:
        # https://docs.aws.amazon.com/eventbridge/latest/APIReference/API_PutEvents.html
        if answer["FailedEntryCount"]:
            raise Temporary(f"{what}: {answer['Entries'][0]['ErrorCode']}")
