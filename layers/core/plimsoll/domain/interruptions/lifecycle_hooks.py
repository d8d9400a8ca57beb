"""The lifecycle hooks that an instance waits for, and what its interruption knows of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from plimsoll.domain.interruptions.model import Interruption, NoticeRecord, kept
from plimsoll.domain.notices import LifecycleTerminate


@dataclass(frozen=True, slots=True, kw_only=True)
class LifecycleHook:
    """A hook for which a group's instances wait before they are terminated."""

    group: str
    """The Auto Scaling group."""
    name: str
    timeout: timedelta
    """How long an instance waits, from the beginning or from the last heartbeat."""
    longest: timedelta
    """How long it waits in all, however many heartbeats there are."""
    ours: bool
    """By its name or metadata the owner gave it to Plimsoll: no other is kept up or completed."""


def waits_for_hooks(interruption: Interruption) -> bool:
    """Whether the instance waited for a hook at the last notice, and was not drained since."""
    told = any(notice.kind == LifecycleTerminate.kind for notice in interruption.standing)
    return told and interruption.phase == "open"


def with_ends(
    interruption: Interruption,
    waits: Mapping[str, timedelta],
    *,
    heartbeat: datetime | None = None,
) -> Interruption:
    """Put how long hooks wait, counted from their notices, in the place of what was guessed.

    With a heartbeat that was sent the wait is the longest that heartbeats can make it.
    """

    def timed(notice: NoticeRecord) -> NoticeRecord:
        wait = waits.get(notice.about or "")
        if wait is None or not (notice.guessed or heartbeat):
            return notice
        said = heartbeat or notice.heartbeat
        return replace(notice, ends=notice.time + wait, guessed=False, heartbeat=said)

    if not waits:
        return interruption
    return replace(interruption, notices=kept(map(timed, interruption.notices)))


def as_told(
    interruption: Interruption, hooks: Sequence[LifecycleHook], now: datetime
) -> Interruption:
    """Put what hooks say in the place of a guess, for the plan that has just read them.

    One of ours ends nothing while there is time to keep it up.
    """
    since = interruption.notices[-1].time
    return with_ends(
        interruption,
        {
            hook.name: hook.longest
            if hook.ours and now < since + hook.timeout / 3
            else hook.timeout
            for hook in hooks
        },
    )


def kept_up(interruption: Interruption, hooks: Sequence[LifecycleHook]) -> Interruption:
    """Put what hooks say in the place of a guess, as it is once the plan that reads them has sent its heartbeats."""
    waits = {hook.name: hook.longest if hook.ours else hook.timeout for hook in hooks}
    return with_ends(interruption, waits)


def needs_heartbeat(interruption: Interruption, hook: LifecycleHook, now: datetime) -> bool:
    """Whether a hook was never told, or not for a third of its timeout, and can still be told.

    The first is sent at once: only then is it known that the hook's timeout ends nothing. A cluster in
    which nothing can be done is observed once a minute, which must not come too late.
    """
    return any(
        notice.about == hook.name
        and now < notice.time + hook.longest
        and (notice.heartbeat is None or now >= notice.heartbeat + hook.timeout / 3)
        for notice in interruption.standing
    )
