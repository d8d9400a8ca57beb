"""What is kept of a cluster's GPUs: a document for each class of workload and day, and one that lists them.

They are written when an hour is made, and made anew, of its minutes. So they lag by an hour.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from datetime import UTC, date, datetime, time, timedelta
from hashlib import sha256
from typing import Final

import msgspec

from plimsoll_service.domain.gpu import ClassDaySum, merged
from plimsoll_service.services.ports import TenantData
from plimsoll_service.services.stored import read, stored
from plimsoll_service.wire.documents import encode
from plimsoll_service.wire.gpu import ClassDay, ClassDays, GpuClass

KEPT: Final = timedelta(days=35)
MOST_OF_DAY: Final = 1000
"""Classes of a day. Of more, those that come first stay."""
PAGE_BYTES: Final = 4 * 2**20
"""Lambda returns 6 MB at most; one document has less than 1 MB."""
_PREFIX: Final = "gpu#"
_ALL: Final = 10**6


class _Day(msgspec.Struct, frozen=True):
    """The classes of a day."""

    classes: frozenset[str] = frozenset()
    """By their digests."""
    left_out: int = 0


def keep_class_days(data: TenantData, cluster: str, found: ClassDaySum) -> None:
    """Merge class-days into those that are kept. Again is once.

    Raises:
        Conflict: somebody else writes them.
    """
    by_day = defaultdict[date, list[ClassDay]](list)
    for each in found.days:
        by_day[each.day].append(each)
    for day, classes in by_day.items():
        _keep_day(data, cluster, day, classes, found.left_out)


def class_days(data: TenantData, cluster: str, since: date, after: str) -> ClassDays:
    """Return a page of the class-days from a day on, in the order of days.

    Args:
        data: Of the tenant.
        cluster: Which cluster.
        since: The first day.
        after: What the page before it said of the next one; empty: this is the first page.
    """
    days, size, left_out = list[ClassDay](), 0, 0
    first = max(_key(since), f"{_PREFIX}{after}")
    for document in data.list(cluster, first, f"{_PREFIX}~", limit=_ALL):
        name = document.key.removeprefix(_PREFIX)
        if "#" not in name:
            of_day = read(data, cluster, document, _Day)
            left_out = max(left_out, of_day.left_out if of_day else 0)
            continue
        size += len(document.body)
        if days and size > PAGE_BYTES:
            return ClassDays(days=tuple(days), left_out=left_out, next=name)
        found = read(data, cluster, document, ClassDay)
        days += [found] if found is not None else []
    return ClassDays(days=tuple(days), left_out=left_out)


def _keep_day(
    data: TenantData, cluster: str, day: date, found: Sequence[ClassDay], left_out: int
) -> None:
    expires = datetime.combine(day, time(), UTC) + timedelta(days=1) + KEPT
    listed, version = stored(data, cluster, _key(day), _Day)
    known = listed or _Day()
    kept, refused = dict[str, ClassDay](), 0
    for each in found:
        digest = _digest(each.of)
        if digest in known.classes or len(known.classes | kept.keys()) < MOST_OF_DAY:
            kept[digest] = each
        else:
            refused += 1
    said = _Day(
        classes=known.classes | kept.keys(), left_out=max(known.left_out, left_out + refused)
    )
    if said != known:
        data.put(cluster, _key(day), encode(said), version=version, expires=expires)
    for digest, each in kept.items():
        key = f"{_key(day)}#{digest}"
        before, version = stored(data, cluster, key, ClassDay)
        now = each if before is None else merged(before, each)
        if now != before:
            data.put(cluster, key, encode(now), version=version, expires=expires)


def _key(day: date) -> str:
    return f"{_PREFIX}{day}"


def _digest(of: GpuClass) -> str:
    return sha256(encode(of)).hexdigest()[:32]
