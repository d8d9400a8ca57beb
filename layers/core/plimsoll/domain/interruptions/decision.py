"""Whether a notice may act on the instance as it is now: an instance id outlives its launches."""

from __future__ import annotations

from datetime import datetime

from plimsoll.domain.notices import About, Decision, Notice, clock_text, nothing


def actionable(notice: Notice, *, launched: datetime | None = None) -> Decision:
    """Decide what a notice leads to.

    Args:
        notice: Any notice, also those that are not about an instance.
        launched: When the instance was last launched, if that is known.
    """
    former = of_former_life(notice.time, launched=launched) if isinstance(notice, About) else None
    return nothing(former) if former else notice.decision


def of_former_life(time: datetime, *, launched: datetime | None) -> str | None:
    """Say why something of that time is about an instance that has been reborn since; else None.

    EC2's launch time is renewed when a stopped or hibernated instance starts; it has whole seconds.
    """
    if launched is None or time >= launched.replace(microsecond=0):
        return None
    return (
        f"from {clock_text(time)}, before the instance was launched ({clock_text(launched)}): "
        "a former life"
    )
