"""The table of event kinds: a new kind is one file beside this one, and one line here."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import datetime
from typing import Final

from plimsoll.domain.errors import BadInput, Discardable
from plimsoll.domain.notices import (
    canary,
    capacity_reservation,
    health,
    lifecycle,
    rebalance,
    spot,
    state_change,
    taint,
    zonal_shift,
)
from plimsoll.domain.notices.canary import Canary
from plimsoll.domain.notices.capacity_reservation import CapacityReservationInterruption
from plimsoll.domain.notices.decision import Unknown
from plimsoll.domain.notices.envelope import AUTO_SCALING, Envelope, Opened, open_envelope
from plimsoll.domain.notices.health import HealthScheduledChange
from plimsoll.domain.notices.lifecycle import LifecycleLaunch, LifecycleTerminate, TestNotification
from plimsoll.domain.notices.rebalance import RebalanceRecommendation
from plimsoll.domain.notices.spot import SpotInterruption
from plimsoll.domain.notices.state_change import StateChange
from plimsoll.domain.notices.taint import InterruptionTaint
from plimsoll.domain.notices.zonal_shift import ZonalShift

type InstanceNotice = (
    SpotInterruption
    | CapacityReservationInterruption
    | LifecycleTerminate
    | HealthScheduledChange
    | RebalanceRecommendation
    | StateChange
    | LifecycleLaunch
)
"""About an instance, the most urgent first: this order is the ranking of kinds. A state change ranks
below what announces an end: it says that an instance goes, but any other kind says why."""
type Notice = InstanceNotice | InterruptionTaint | ZonalShift | TestNotification | Canary | Unknown
type Parser = Callable[[Envelope], tuple[Notice, ...]]

DRILL_SOURCE: Final = "plimsoll.drill"
"""Stands for every `aws.*` source, which AWS lets nobody else use."""
_AWS: Final = "aws."

TABLE: Final[Mapping[tuple[str, str], Parser]] = {
    ("aws.ec2", "EC2 Spot Instance Interruption Warning"): spot.parse,
    ("aws.ec2", "EC2 Instance Rebalance Recommendation"): rebalance.parse,
    ("aws.ec2", "EC2 Instance State-change Notification"): state_change.parse,
    **{("aws.ec2", name): capacity_reservation.parse for name in capacity_reservation.DETAIL_TYPES},
    ("aws.autoscaling", "EC2 Instance-terminate Lifecycle Action"): lifecycle.terminating,
    ("aws.autoscaling", "EC2 Instance-launch Lifecycle Action"): lifecycle.launching,
    ("aws.health", "AWS Health Event"): health.parse,
    **{("aws.arc-zonal-shift", name): zonal_shift.parse for name in zonal_shift.DETAIL_TYPES},
    (canary.CANARY_SOURCE, canary.CANARY_DETAIL_TYPE): canary.parse,
    (taint.SERVICE_SOURCE, taint.TAINT_DETAIL_TYPE): taint.parse,
}

_DRILLS: Final = {detail_type: parser for (_, detail_type), parser in TABLE.items()}


def parse(
    body: object, *, received: datetime, drills: bool = False, region: str | None = None
) -> tuple[Notice, ...]:
    """Read a body, as JSON text or already decoded, into the notices it holds: at least one.

    The same notice comes more than once (redelivery, copies): tell copies apart by `id`.

    Args:
        body: An EventBridge event or a flat Auto Scaling message, perhaps inside an SNS message.
        received: Now; the time of what has no time worth reading.
        drills: Let the source `plimsoll.drill` stand for any source of AWS.
        region: Where the queue is, for a flat message, which does not say.

    Raises:
        Discardable: It is not what it says it is, and is of a source that whoever may put events can name.
        BadInput: The same of a source of AWS, so that we misread it. The message names the field.
    """
    found = open_envelope(body)
    # Before the table: a test notification has no instance and no token.
    if found.source == AUTO_SCALING or (drills and found.source == DRILL_SOURCE):
        test = lifecycle.recognised(found, received=received)
        if test is not None:
            return (test,)
    parser, why = _parser(found, drills=drills)
    if parser is None:
        identity = found.fields["id"].value
        return (
            Unknown(
                source=found.source,
                detail_type=found.detail_type,
                why=why,
                time=received,
                id=identity[:128] if isinstance(identity, str) else None,
            ),
        )
    try:
        return parser(Envelope.of(found, received=received, region=region))
    except BadInput as error:
        if found.source.startswith(_AWS):
            raise
        raise Discardable(f"{found.detail_type} from {found.source}: {error}") from error


def _parser(found: Opened, *, drills: bool) -> tuple[Parser | None, str]:
    if found.source != DRILL_SOURCE:
        return TABLE.get((found.source, found.detail_type)), "no kind of event that we know"
    if not drills:
        return None, "a drill, and drills are not accepted here"
    return _DRILLS.get(found.detail_type), "a drill of no kind of event that we know"
