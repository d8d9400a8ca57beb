"""Merges a notice into what is already known of its instance, whatever came first.

An instance id outlives its launches, so a notice counts for the launch that it is about only.
"""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime

from plimsoll.domain.interruptions.model import (
    CLOSED,
    Interruption,
    NoticeRecord,
    first_gone,
    join,
    last,
)
from plimsoll.domain.notices import (
    About,
    Decision,
    HealthScheduledChange,
    InstanceNotice,
    LifecycleTerminate,
    Notice,
    StateChange,
    clock_text,
    nothing,
)


def actionable(notice: Notice, *, launched: datetime | None = None) -> Decision:
    """Decide what a notice leads to.

    Args:
        notice: Any notice, also those that are not about an instance.
        launched: When the instance was last launched, if that is known.
    """
    former = _of_former_life(notice.time, launched=launched) if isinstance(notice, About) else None
    return nothing(former) if former else notice.decision


def _of_former_life(time: datetime, *, launched: datetime | None) -> str | None:
    """Say why something of that time is about an instance that has been reborn since; else None.

    EC2's launch time is renewed when a stopped or hibernated instance starts; it has whole seconds.
    """
    if launched is None or time >= launched.replace(microsecond=0):
        return None
    return (
        f"from {clock_text(time)}, before the instance was launched ({clock_text(launched)}): "
        "a former life"
    )


def merge(  # noqa: PLR0913 - all but two by name
    existing: Interruption | None,
    notice: InstanceNotice,
    *,
    node: str,
    launched: datetime | None = None,
    decision: Decision | None = None,
    traceparent: str | None = None,
) -> Interruption:
    """Merge a notice that `actionable` says belongs in an interruption.

    `decision` is what it said of the notice alone, where that is known already; `traceparent` is that
    of the span that handles the notice.

    A record of a former life is replaced; a notice of a former life changes nothing. Of two launch
    times that are known the later counts, because an index may lag behind EC2.

    Raises:
        ValueError: There is nothing to return: the notice leads to no interruption (its decision
            says why), and none exists.
    """
    if launched is not None:
        launched = launched.replace(microsecond=0)
    launched = last(launched, existing.launched if existing else None)
    decision = decision or actionable(notice)
    former = _of_former_life(notice.time, launched=launched)
    if former or not decision.merges:
        if existing is None:
            raise ValueError(f"{notice.kind} opens no interruption: {former or decision.reason}")
        return existing
    record = replace(_record(notice), traceparent=traceparent)
    fresh = Interruption(
        instance=notice.instance,
        launched=launched,
        node=node,
        notices=(record,),
        gone=first_gone((record,)),
    )
    # A former life is dropped first: `join` refuses records of two lives.
    same_life = existing and in_this_life(existing, launched=launched)
    return join(same_life, fresh) if same_life else fresh


def in_this_life(existing: Interruption, *, launched: datetime | None) -> Interruption | None:
    """Keep of a record what is about the present life of its instance; None when nothing is.

    `launched` is EC2's present launch time. A record that names none, or an earlier one, may hold
    things of both lives: whoever wrote it went by the node index, which lags behind EC2. The cordon
    is the Node's, which may outlive a launch.
    """
    if launched is None:
        return existing
    launched = launched.replace(microsecond=0)
    if existing.launched is not None and existing.launched >= launched:
        return existing
    notices = tuple(n for n in existing.notices if n.time >= launched)
    if not notices:
        return None

    def since(mark: datetime | None) -> datetime | None:
        return mark if mark and mark >= launched else None

    return replace(
        existing,
        launched=launched,
        notices=notices,
        emptied=since(existing.emptied),
        gone=since(existing.gone) or first_gone(notices),
        closed=since(existing.closed),
    )


def _record(notice: InstanceNotice) -> NoticeRecord:
    record = NoticeRecord(kind=notice.kind, time=notice.time, id=notice.id, ends=notice.ends)
    match notice:
        case HealthScheduledChange():
            return replace(record, about=notice.arn, state=CLOSED if notice.closed else None)
        case StateChange():
            return replace(record, state=notice.state)
        case LifecycleTerminate():
            return replace(record, about=notice.hook, guessed=True)
        case _:
            return record
