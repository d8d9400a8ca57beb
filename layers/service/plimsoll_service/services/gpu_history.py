"""What is kept of a cluster's GPUs: one document for each day, of all classes of workload.

It is written when an hour is made, and made anew, of its minutes. So it lags by an hour.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from datetime import UTC, date, datetime, time, timedelta
from typing import Annotated, Final

import msgspec
from msgspec import Meta

from plimsoll_service.domain.gpu import ClassDaySum, merged, pods_of_each, with_pods
from plimsoll_service.services.ports import TenantData
from plimsoll_service.services.stored import read, stored
from plimsoll_service.wire.documents import Count, encode
from plimsoll_service.wire.gpu import MOST_PODS, ClassDay, ClassDays

CLASS_DAYS_KEPT: Final = timedelta(days=35)
MOST_CLASSES_OF_DAY: Final = 500
"""Classes of a day. Of more, those that come first stay."""
PAGE_BYTES: Final = 4 * 2**20
"""Lambda returns 6 MB at most; one class-day has less than 1 MB."""
_PREFIX: Final = "gpu#"


class _Day(msgspec.Struct, frozen=True):
    """The classes of a day."""

    days: Annotated[tuple[ClassDay, ...], Meta(max_length=MOST_CLASSES_OF_DAY)] = ()
    """In the order in which they came."""
    left_out: Count = 0
    most_pods: Annotated[int, Meta(ge=1, le=MOST_PODS)] = MOST_PODS
    """Of each class that are kept one by one. It never grows: a pod that is left out once stays left out."""


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
    day, _, number = after.partition("#")
    first = max(_key(since), f"{_PREFIX}{day}")
    for document in data.list(cluster, first, f"{_PREFIX}~"):
        of_day = read(data, cluster, document, _Day) or _Day()
        left_out = max(left_out, of_day.left_out)
        start = int(number) if number and document.key == f"{_PREFIX}{day}" else 0
        for at, each in enumerate(of_day.days[start:], start):
            size += len(msgspec.json.encode(each))
            if days and size > PAGE_BYTES:
                return ClassDays(days=tuple(days), left_out=left_out, next=f"{each.day}#{at}")
            days.append(each)
    return ClassDays(days=tuple(days), left_out=left_out)


def _keep_day(
    data: TenantData, cluster: str, day: date, found: Sequence[ClassDay], left_out: int
) -> None:
    expires = datetime.combine(day, time(), UTC) + timedelta(days=1) + CLASS_DAYS_KEPT
    listed, version = stored(data, cluster, _key(day), _Day)
    known = listed or _Day()
    said = _with(known, found, left_out)
    if said != known:
        data.put(cluster, _key(day), encode(said), version=version, expires=expires)


def _with(known: _Day, found: Sequence[ClassDay], left_out: int) -> _Day:
    """Return a day with what an hour of it tells, within its bounds."""
    classes, refused = {each.of: each for each in known.days}, 0
    for each in found:
        if each.of in classes:
            classes[each.of] = merged(classes[each.of], each)
        elif len(classes) < MOST_CLASSES_OF_DAY:
            classes[each.of] = each
        else:
            refused += 1
    most = pods_of_each([len(each.pods) for each in classes.values()], known.most_pods)
    return _Day(
        days=tuple(with_pods(each, most) for each in classes.values()),
        left_out=max(known.left_out, left_out + refused),
        most_pods=most,
    )


def _key(day: date) -> str:
    return f"{_PREFIX}{day}"
