"""What is kept of GPUs, at its bounds: one document for each day, whatever an agent tells."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import UTC, date, datetime, timedelta
from typing import Any

from plimsoll_service.domain.gpu import ClassDaySum, GpuMinute
from plimsoll_service.domain.gpu.minutes import MOST_CLASSES, ClassMinute, PodMinute
from plimsoll_service.services.gpu_history import (
    MOST_CLASSES_OF_DAY,
    _Day,
    _with,
    class_days,
    keep_class_days,
)
from plimsoll_service.wire.documents import encode
from plimsoll_service.wire.gpu import (
    MOST_PODS,
    MOST_PODS_OF_ALL,
    WINDOWS_PER_DAY,
    ClassDay,
    ClassDays,
    GpuClass,
    PodDay,
)
from plimsoll_simulation.fake_aws.service_stores import MemoryTenants
from tests.support.cli_environment import StillClock

NOON = datetime(2026, 11, 22, 12, tzinfo=UTC)
SHOP = "shop"


@dataclass
class Counting:
    """The data of a tenant that counts what it is asked."""

    data: Any
    calls: list[str] = field(default_factory=list)

    def __getattr__(self, name: str) -> Any:
        self.calls.append(name)
        return getattr(self.data, name)


def a_minute(classes: range, *, pods: int, prefix: str = "p") -> GpuMinute:
    return GpuMinute(
        classes=tuple(
            ClassMinute(
                of=GpuClass(namespace="ml", kind="Job", owner=f"job-{n}", model="H200"),
                resource="nvidia.com/gpu",
                sharing="none",
                pods=tuple(
                    PodMinute(
                        pod=f"{prefix}-{n}-{pod:04}",
                        node="n",
                        instance_type="",
                        capacity="",
                        node_gpus=8,
                        gpus=1,
                        busy=True,
                    )
                    for pod in range(pods)
                ),
                joint_memory_mib=1,
                joint_duty=1,
                left_out=0,
                missing=(),
            )
            for n in classes
        )
    )


def an_hour(*minutes: GpuMinute, at: datetime = NOON) -> ClassDaySum:
    found = ClassDaySum()
    for number, minute in enumerate(minutes):
        found.add(at + timedelta(minutes=number), minute)
    return found


def some_data() -> Any:
    return MemoryTenants(StillClock(NOON)).of("acme")


def pages(data: Any) -> list[ClassDays]:
    found = [class_days(data, SHOP, NOON.date(), "")]
    while found[-1].next:
        found.append(class_days(data, SHOP, NOON.date(), found[-1].next))
    return found


def test_an_hour_of_as_many_classes_as_count_is_one_read_and_one_write():
    data = Counting(some_data())
    keep_class_days(data, SHOP, an_hour(a_minute(range(MOST_CLASSES), pods=1)))
    assert data.calls == ["get", "put"]
    assert len(class_days(data, SHOP, NOON.date(), "").days) == MOST_CLASSES


def test_of_all_classes_of_a_day_so_many_pods_are_kept_one_by_one_and_the_rest_counts():
    hour = an_hour(
        *(
            a_minute(range(MOST_CLASSES), pods=MOST_PODS, prefix=prefix)
            for prefix in ("p", "o", "n")
        )
    )
    days = hour.days
    assert sum(len(each.pods) for each in days) <= MOST_PODS_OF_ALL
    assert all(each.left_out for each in days)
    small = an_hour(a_minute(range(3), pods=MOST_PODS)).days
    assert [len(each.pods) for each in small] == [MOST_PODS] * 3


def test_again_is_once_also_where_pods_are_left_out():
    first = an_hour(a_minute(range(40), pods=60)).days
    second = an_hour(a_minute(range(20, 80), pods=60, prefix="o")).days
    known = _with(_with(_Day(), first, 0), second, 0)
    assert known.most_pods < MOST_PODS
    assert _with(known, second, 0) == known
    assert _with(known, first, 0) == known
    assert sum(len(each.pods) for each in known.days) <= MOST_PODS_OF_ALL


def largest(number: int, pods: int) -> ClassDay:
    """A class-day with the longest texts and numbers that samples can make."""

    def row(most: int) -> tuple[int, ...]:
        return (most,) * WINDOWS_PER_DAY

    minutes = "f" * 360
    return ClassDay(
        of=GpuClass(
            namespace="n" * 63,
            kind="K" * 63,
            owner=f"{number:0253}",
            template="t" * 63,
            model="m" * 256,
        ),
        day=date(2026, 11, 22),
        resource="d" * 253 + "/" + "r" * 63,
        sharing="time-slicing",
        pods=tuple(
            PodDay(
                pod=f"{n:0256}",
                node="n" * 253,
                instance_type="i" * 63,
                capacity="on-demand",
                node_gpus=2**53,
                gpus=2**53,
                seen=minutes,
                busy=minutes,
                memory_mib=row(2**26),
                duty=row(1000),
                dram=row(1000),
                power_w=row(2**16),
            )
            for n in range(pods)
        ),
        joint_memory_mib=row(2**26 * 16_000),
        joint_duty=row(1000 * 16_000),
        left_out=2**53,
    )


def test_a_day_at_its_bounds_fits_into_one_document_and_is_read_in_pages():
    found = [largest(n, MOST_PODS) for n in range(MOST_CLASSES_OF_DAY + 1)]
    day = _with(_Day(), found, 0)
    assert (len(day.days), day.left_out) == (MOST_CLASSES_OF_DAY, 1)
    data = some_data()
    expires = NOON + timedelta(days=1)
    data.put(SHOP, f"gpu#{NOON.date()}", encode(day), expires=expires)
    read = pages(data)
    assert len(read) > 1
    assert all(len(encode(page)) < 5 * 2**20 for page in read)
    assert [each for page in read for each in page.days] == [*day.days]
