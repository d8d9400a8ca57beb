"""What a notice leads to, in words: the one place where that is decided.

A kind that leads to a drain is recorded on the Node; how fast the drain must be is the business of
the deadline, not of the kind.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import assert_never

from plimsoll.domain.notices import (
    Canary,
    CapacityReservationInterruption,
    HealthScheduledChange,
    InstanceNotice,
    LifecycleLaunch,
    LifecycleTerminate,
    Notice,
    RebalanceRecommendation,
    SpotInterruption,
    StateChange,
    TestNotification,
    Unknown,
    ZonalShift,
)
from plimsoll.domain.notices.lifecycle import WARM_POOL
from plimsoll.domain.notices.state_change import GONE, LEAVING


class Effect(StrEnum):
    """What to do with a notice."""

    DRAIN = "drain"
    """Cordon, record on the Node, move the workloads."""
    GONE = "gone"
    """The instance is proven gone: record it where a Node is left."""
    WITHDRAW = "withdraw"
    """Something announced was called off: merge it into the record if there is one."""
    SHOW = "show"
    """Record and show it; nothing acts on it yet."""
    NOTHING = "nothing"
    """Acknowledge it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Decision:
    """What a notice leads to, and why."""

    effect: Effect
    reason: str

    @property
    def merges(self) -> bool:
        """Say whether the notice belongs in an interruption."""
        return self.effect in (Effect.DRAIN, Effect.GONE, Effect.WITHDRAW)


def actionable(notice: Notice, *, launched: datetime | None = None) -> Decision:
    """Decide what a notice leads to.

    Args:
        notice: Any notice, also those that are not about an instance.
        launched: When the instance was last launched, if that is known.
    """
    match notice:
        case ZonalShift():
            verb = "leaves" if notice.active else "returns to"
            reason = f"{notice.cause}: traffic {verb} the zone {notice.zone_id or '(not named)'}"
            return Decision(effect=Effect.SHOW, reason=reason)
        case TestNotification():
            return _nothing("Auto Scaling tests the queue of a hook")
        case Canary():
            return _nothing("a canary: notices arrive")
        case Unknown():
            return _nothing(f"{notice.detail_type} from {notice.source}: {notice.why}")
        case _:
            former = of_former_life(notice.time, launched=launched)
            return _nothing(former) if former else _about_instance(notice)


def of_former_life(time: datetime, *, launched: datetime | None) -> str | None:
    """Say why something of that time is about an instance that has been reborn since; else None.

    EC2's launch time is renewed when a stopped or hibernated instance starts; it has whole seconds.
    """
    if launched is None or time >= launched.replace(microsecond=0):
        return None
    return (
        f"from {_clock(time)}, before the instance was launched ({_clock(launched)}): a former life"
    )


def _about_instance(notice: InstanceNotice) -> Decision:
    match notice:
        case SpotInterruption(action="hibernate"):
            said = _drain("spot hibernates it from now on, without lead time")
        case SpotInterruption():
            said = _drain(f"spot reclaims it ({notice.action}) at {_clock(notice.ends)}")
        case RebalanceRecommendation():
            said = _drain("likely to be reclaimed: moved without a deadline")
        case CapacityReservationInterruption():
            said = _drain(f"its capacity reservation is reclaimed at {_clock(notice.ends)}")
        case LifecycleTerminate():
            said = _terminate(notice)
        case LifecycleLaunch():
            said = _nothing(f"{notice.group} launches it")
        case HealthScheduledChange():
            said = _health(notice)
        case StateChange():
            said = _state(notice)
        case _:
            assert_never(notice)
    return said


def _terminate(notice: LifecycleTerminate) -> Decision:
    verb = "returns it to its warm pool" if notice.destination == WARM_POOL else "terminates it"
    return _drain(f"{notice.group} {verb}; the hook {notice.hook} waits")


def _health(notice: HealthScheduledChange) -> Decision:
    if notice.closed:
        return Decision(effect=Effect.WITHDRAW, reason=f"{notice.code} is over or was called off")
    when = f"at {_clock(notice.ends)}" if notice.ends else "at a time not known"
    what = {
        "maintenance": "maintenance begins",
        "retirement": "its hardware is retired",
        "other": f"{notice.code} begins",
    }[notice.change]
    return _drain(f"{what} {when}")


def _state(notice: StateChange) -> Decision:
    if notice.state in GONE:
        return Decision(effect=Effect.GONE, reason=f"it is {notice.state}")
    if notice.state in LEAVING:
        return _drain(f"it is {notice.state} already: what is left is to replace its pods")
    return _nothing(f"it is {notice.state}")


def _drain(reason: str) -> Decision:
    return Decision(effect=Effect.DRAIN, reason=reason)


def _nothing(reason: str) -> Decision:
    return Decision(effect=Effect.NOTHING, reason=reason)


def _clock(time: datetime) -> str:
    return f"{time:%Y-%m-%dT%H:%M:%SZ}"
