"""How often somebody may ask in a minute."""

from __future__ import annotations

from datetime import datetime, timedelta

from plimsoll.domain.errors import Throttled
from plimsoll_service.domain.snapshots import Span
from plimsoll_service.services.ports import Members


def count(members: Members, who: str, what: str, *, most: int, now: datetime) -> None:
    """Count one more request against a limit. Of requests that come at once, too, no more than `most` pass.

    Args:
        members: keeps the counts.
        who: a subject, a tenant or an address.
        what: the requests that the limit is for.
        most: how many pass in a minute.
        now: the time.

    Raises:
        Throttled: there were so many in this minute.
    """
    minute = Span.MINUTE.start(now)
    word = f"{what}#{who}#{minute:%Y-%m-%dT%H:%M}"
    if not members.count(word, minute + timedelta(hours=1), most=most):
        left = (minute + timedelta(minutes=1) - now).total_seconds()
        raise Throttled(
            f"more than {most} requests came in this minute ({what})", retry_after=max(1.0, left)
        )
