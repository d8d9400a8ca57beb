"""Days of classes of workload, out of minutes.

All is a maximum, a minimum, an OR or an AND. So minutes may come twice, late and out of order.
"""

from __future__ import annotations

from datetime import date, datetime
from typing import Final

from msgspec.structs import replace

from plimsoll_service.domain.gpu.minutes import (
    MOST_CLASSES,
    SHARINGS,
    ClassMinute,
    GpuMinute,
    PodMinute,
    pods_of_each,
)
from plimsoll_service.wire.gpu import (
    MOST_PODS,
    UNSEEN,
    WINDOW,
    WINDOWS_PER_DAY,
    ClassDay,
    GpuClass,
    PodDay,
    Sharing,
)

_MINUTES_PER_WINDOW: Final = int(WINDOW.total_seconds()) // 60


def merged(one: ClassDay, other: ClassDay) -> ClassDay:
    """Return what two documents of the same class and day tell together.

    Pods beyond `MOST_PODS` are left out by their uids, which never change: a pod that is left out once is not among
    the lowest of any larger set either.
    """
    pods = {pod.pod: pod for pod in one.pods}
    for pod in other.pods:
        pods[pod.pod] = _merged_pod(pods[pod.pod], pod) if pod.pod in pods else pod
    return ClassDay(
        of=one.of,
        day=one.day,
        resource=max(one.resource, other.resource),
        sharing=max(one.sharing, other.sharing, key=SHARINGS.index),
        pods=tuple(pods[uid] for uid in sorted(pods)[:MOST_PODS]),
        joint_memory_mib=_larger(one.joint_memory_mib, other.joint_memory_mib),
        joint_duty=_larger(one.joint_duty, other.joint_duty),
        left_out=max(one.left_out, other.left_out, int(len(pods) > MOST_PODS)),
        missing=tuple(sorted({*one.missing} & {*other.missing})),
    )


def with_pods(day: ClassDay, most: int) -> ClassDay:
    """Return a class-day with so many of its pods, those with the lowest uids; the others count as left out."""
    beyond = len(day.pods) - most
    if beyond <= 0:
        return day
    return replace(day, pods=day.pods[:most], left_out=max(day.left_out, beyond))


class ClassDaySum:
    """The class-days that minutes make, in no more room than an hour may take."""

    def __init__(self) -> None:
        self._found: dict[tuple[date, GpuClass], _Class] = {}
        self.left_out = 0
        """GPUs, instances and classes of a minute that are not kept."""

    def add(self, at: datetime, minute: GpuMinute) -> None:
        """Add the minute that began at a time in UTC."""
        left_out = minute.left_out
        for each in minute.classes:
            key = (at.date(), each.of)
            if key not in self._found:
                if len(self._found) >= MOST_CLASSES:
                    left_out += 1
                    continue
                self._found[key] = _Class(each)
            self._found[key].add(60 * at.hour + at.minute, each)
        self.left_out = max(self.left_out, left_out)

    @property
    def days(self) -> tuple[ClassDay, ...]:
        """What was found: of all classes no more pods than a day keeps one by one."""
        most = pods_of_each([its.pods for its in self._found.values()], MOST_PODS)
        return tuple(its.of_day(day, most) for (day, _), its in self._found.items())


class _Class:
    """What is added up of a class."""

    def __init__(self, first: ClassMinute) -> None:
        self._of = first.of
        self._resource: str = first.resource
        self._sharing: Sharing = first.sharing
        self._pods: dict[str, _Pod] = {}
        self._memory, self._duty = _unseen(), _unseen()
        self._left_out = 0
        self._missing = {*first.missing}

    def add(self, number: int, minute: ClassMinute) -> None:
        window = number // _MINUTES_PER_WINDOW
        self._resource = max(self._resource, minute.resource)
        self._sharing = max(self._sharing, minute.sharing, key=SHARINGS.index)
        self._memory[window] = max(self._memory[window], minute.joint_memory_mib)
        self._duty[window] = max(self._duty[window], minute.joint_duty)
        self._missing &= {*minute.missing}
        full = len(self._pods) >= MOST_PODS
        highest = max(self._pods) if full else ""
        new = [pod for pod in minute.pods if pod.pod not in self._pods]
        # Of new pods that are beyond all that are kept, nothing is made.
        came = [pod for pod in new if not full or pod.pod < highest]
        for pod in came:
            self._pods[pod.pod] = _Pod(pod)
        beyond = sorted(self._pods)[MOST_PODS:] if came else []
        for uid in beyond:
            del self._pods[uid]
        for pod in minute.pods:
            if (its := self._pods.get(pod.pod)) is not None:
                its.add(number, pod)
        self._left_out = max(
            self._left_out, minute.left_out, int(bool(beyond) or len(came) < len(new))
        )

    @property
    def pods(self) -> int:
        return len(self._pods)

    def of_day(self, day: date, most: int) -> ClassDay:
        return ClassDay(
            of=self._of,
            day=day,
            resource=self._resource,
            sharing=self._sharing,
            pods=tuple(self._pods[uid].of_day() for uid in sorted(self._pods)[:most]),
            joint_memory_mib=tuple(self._memory),
            joint_duty=tuple(self._duty),
            left_out=max(self._left_out, len(self._pods) - most),
            missing=tuple(sorted(self._missing)),
        )


class _Pod:
    """What is added up of a pod."""

    __slots__ = ("_busy", "_first", "_gpus", "_node_gpus", "_seen", "_windows")

    def __init__(self, first: PodMinute) -> None:
        self._first = first
        self._gpus = self._node_gpus = 0
        self._seen = self._busy = 0
        self._windows: dict[int, tuple[int, ...]] = {}
        """Memory, duty, memory bandwidth and power, by the number of the window."""

    def add(self, number: int, minute: PodMinute) -> None:
        self._gpus = max(self._gpus, minute.gpus)
        self._node_gpus = max(self._node_gpus, minute.node_gpus)
        self._seen |= 1 << number
        self._busy |= minute.busy << number
        told = (minute.memory_mib, minute.duty, minute.dram, minute.power_w)
        window = number // _MINUTES_PER_WINDOW
        before = self._windows.get(window)
        self._windows[window] = told if before is None else _larger(before, told)

    def of_day(self) -> PodDay:
        memory, duty, dram, power = (_unseen() for _ in range(4))
        for n, told in self._windows.items():
            memory[n], duty[n], dram[n], power[n] = told
        return PodDay(
            pod=self._first.pod,
            node=self._first.node,
            instance_type=self._first.instance_type,
            capacity=self._first.capacity,
            node_gpus=self._node_gpus,
            gpus=self._gpus,
            seen=_hexadecimal(self._seen),
            busy=_hexadecimal(self._busy),
            memory_mib=tuple(memory),
            duty=tuple(duty),
            dram=tuple(dram),
            power_w=tuple(power),
        )


def _merged_pod(one: PodDay, other: PodDay) -> PodDay:
    return PodDay(
        pod=one.pod,
        node=max(one.node, other.node),
        instance_type=max(one.instance_type, other.instance_type),
        capacity=max(one.capacity, other.capacity),
        node_gpus=max(one.node_gpus, other.node_gpus),
        gpus=max(one.gpus, other.gpus),
        seen=_either(one.seen, other.seen),
        busy=_either(one.busy, other.busy),
        memory_mib=_larger(one.memory_mib, other.memory_mib),
        duty=_larger(one.duty, other.duty),
        dram=_larger(one.dram, other.dram),
        power_w=_larger(one.power_w, other.power_w),
    )


def _unseen() -> list[int]:
    return [UNSEEN] * WINDOWS_PER_DAY


def _larger(one: tuple[int, ...], other: tuple[int, ...]) -> tuple[int, ...]:
    return tuple(map(max, one, other))


def _either(one: str, other: str) -> str:
    return _hexadecimal(int(one or "0", 16) | int(other or "0", 16))


def _hexadecimal(bits: int) -> str:
    return f"{bits:x}" if bits else ""
