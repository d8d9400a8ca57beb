"""How much somebody may ask for in a minute."""

from __future__ import annotations

from datetime import datetime, timedelta

from plimsoll.domain.errors import Conflict, Throttled
from plimsoll_service.domain.snapshots import Span
from plimsoll_service.services.ports import TenantData


def count(data: TenantData, cluster: str, what: str, *, most: int, now: datetime) -> None:
    """Count one more against a limit, of a cluster or, where that is empty, of the tenant.

    Two that are counted at once may be counted as one: the limit keeps a tenant from flooding what others
    share, and no more.

    Raises:
        Throttled: there were so many in this minute.
    """
    minute = Span.MINUTE.start(now)
    key = f"{what}#{minute:%Y-%m-%dT%H:%M}"
    found = data.get(cluster, key)
    before = int(found.body) if found else 0
    if before >= most:
        left = (minute + timedelta(minutes=1) - now).total_seconds()
        raise Throttled(
            f"{before} requests with {what} came in this minute", retry_after=max(1.0, left)
        )
    version = found.version if found else 0
    expires = minute + timedelta(hours=1)
    try:
        data.put(cluster, key, str(before + 1).encode(), version=version, expires=expires)
    except Conflict:
        return
