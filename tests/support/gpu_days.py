"""Documents of GPU classes for tests: owners whose pods work at hours that a test names."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import date, timedelta
from typing import Any

from plimsoll_service.wire.gpu import (
    MINUTES_PER_DAY,
    UNSEEN,
    WINDOWS_PER_DAY,
    ClassDay,
    GpuClass,
    PodDay,
)

MONDAY = date(2026, 11, 2)
NOTHING = (UNSEEN,) * WINDOWS_PER_DAY
_ON_P5: dict[str, Any] = {
    "instance_type": "p5.48xlarge",
    "capacity": "on-demand",
    "node_gpus": 8,
}

type Minute = Callable[[date, int], bool]
"""Whether something holds in a minute of a day."""


def always(_day: date, _minute: int) -> bool:
    return True


def never(_day: date, _minute: int) -> bool:
    return False


def between(begin: int, end: int, weekdays: Sequence[int] = range(7)) -> Minute:
    """Hours from `begin` to before `end`, of days of the week; 0 is Monday."""
    return lambda day, minute: begin * 60 <= minute < end * 60 and day.weekday() in weekdays


def bits(minutes: Sequence[int]) -> str:
    return f"{sum(1 << minute for minute in minutes):x}"


def windows(value: int | Callable[[int], int]) -> tuple[int, ...]:
    made = value if callable(value) else lambda _: value
    return tuple(made(at) for at in range(WINDOWS_PER_DAY))


def a_pod_day(  # noqa: PLR0913 - a test names only what it is about
    day: date = MONDAY,
    *,
    pod: str = "p",
    busy: Minute = always,
    seen: Minute = always,
    memory: int | Callable[[int], int] = 8_000,
    duty: int = 50,
    dram: int = 50,
    **more: Any,
) -> PodDay:
    held = [minute for minute in range(MINUTES_PER_DAY) if seen(day, minute)]
    return PodDay(
        pod=pod,
        node="n",
        seen=bits(held),
        busy=bits([minute for minute in held if busy(day, minute)]),
        memory_mib=windows(memory),
        duty=windows(duty),
        dram=windows(dram),
        power_w=NOTHING,
        **_ON_P5 | more,
    )


def a_class_day(  # noqa: PLR0913 - a test names only what it is about
    owner: str,
    pods: Sequence[PodDay],
    day: date = MONDAY,
    *,
    model: str = "H100-80GB-HBM3",
    kind: str = "Deployment",
    template: str = "t1",
    **more: Any,
) -> ClassDay:
    of = GpuClass(namespace="lab", kind=kind, owner=owner, template=template, model=model)
    return ClassDay(
        of=of,
        day=day,
        pods=tuple(pods),
        joint_memory_mib=NOTHING,
        joint_duty=NOTHING,
        **{"resource": "nvidia.com/gpu"} | more,
    )


def days_of(owner: str, days: int = 14, *, kind: str = "Deployment", **pod: Any) -> list[ClassDay]:
    """An owner of one pod that is alike every day."""
    on = [MONDAY + timedelta(days=n) for n in range(days)]
    return [a_class_day(owner, [a_pod_day(day, **pod)], day, kind=kind) for day in on]
