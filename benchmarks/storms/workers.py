"""The processes of the functions in a storm: how many there are, and what memory and processors they take."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Self, override

from plimsoll_simulation.rigs.threads import Threads
from plimsoll_testbed.rigs.emulated.emulator import Emulator
from plimsoll_testbed.rigs.emulated.ministack import MiniStack

SIZES: Final = {"small": 3, "usual": 10}
"""The template's Size -> how many batches of notices, and how many wake-ups, are handled at once, each by
a process. `large`, with 50, is left out: all would have to start at once, and that wants many cores."""
POLL_SECONDS: Final = 1.0
_PROC: Final = Path("/proc")
_MARK: Final = "ministack-lambda-"
_TICKS: Final = os.sysconf("SC_CLK_TCK")


def sized(size: str) -> type[Emulator]:
    """Return an emulator that deploys and warms a stack of that Size, whatever the rig asks for.

    All workers are started before the storm: to start one here is to unpack its layers and compile
    them, which takes a processor seconds that Lambda does not take.
    """

    class Sized(MiniStack):
        @override
        def deploy(self, template: Path | None = None, **parameters: str) -> Mapping[str, str]:
            return super().deploy(template, **(parameters | {"Size": size}))

        @override
        def warm(self, function: str, workers: int) -> None:
            super().warm(function, SIZES[size])

    return Sized


@dataclass(frozen=True, slots=True, kw_only=True)
class Peak:
    """The memory of one function's processes, in bytes."""

    processes: int
    most: int
    """Of one of them, at its worst."""
    total: int
    """Of all of them, each at its worst."""


class Processes(Threads):
    """Looks at the functions' processes of one emulator, and at its own, once a second. It needs Linux' /proc.

    Args:
        folder: the emulator's, in which each of them runs a script.
    """

    def __init__(self, folder: Path) -> None:
        super().__init__()
        self._folder = folder
        self._peaks: dict[str, dict[int, int]] = {}
        self._seconds: dict[int, list[float]] = {}
        """Process -> the seconds of a processor that it had taken when it was first seen, and last."""
        self._began = time.monotonic()

    @override
    def __enter__(self) -> Self:
        self.spawn(self._run, "processes")
        return self

    def peaks(self) -> Mapping[str, Peak]:
        """Return what was seen, by function, also of processes that are gone."""
        return {
            function: Peak(
                processes=len(peaks), most=max(peaks.values()), total=sum(peaks.values())
            )
            for function, peaks in sorted(self._peaks.items())
        }

    def cores(self) -> float:
        """Return how many processors all of them, and their emulator, took on average."""
        taken = sum(last - first for first, last in self._seconds.values())
        return taken / (time.monotonic() - self._began)

    def _run(self) -> None:
        while not self.ended.is_set():
            self._look()
            self.ended.wait(POLL_SECONDS)

    def _look(self) -> None:
        place = f"{self._folder}/{_MARK}"
        found = [*_processes()]
        sessions = {process.session for process in found if place in process.command}
        for process in found:
            if process.session in sessions:  # a function's, or the emulator that started it
                seconds = self._seconds.setdefault(process.number, [process.seconds] * 2)
                seconds[1] = process.seconds
            if place in process.command and process.peak is not None:
                function = _function(process.command.partition(place)[2])
                self._peaks.setdefault(function, {})[process.number] = process.peak


@dataclass(frozen=True, slots=True, kw_only=True)
class _Process:
    number: int
    command: str
    session: int
    seconds: float
    """Of a processor, that it has taken."""
    peak: int | None
    """Of its memory, in bytes; None of a zombie."""


def _processes() -> Iterator[_Process]:
    for place in _PROC.glob("[0-9]*"):
        try:
            command = (place / "cmdline").read_bytes().decode(errors="replace")
            # From the third on: see proc(5).
            fields = (place / "stat").read_text().rpartition(")")[2].split()
            status = (place / "status").read_text()
        except OSError:  # it ended meanwhile
            continue
        yield _Process(
            number=int(place.name),
            command=command,
            session=int(fields[3]),
            seconds=(int(fields[11]) + int(fields[12])) / _TICKS,
            peak=_field(status, "VmHWM"),
        )


def _function(rest: str) -> str:
    """Return whose process it is: after the mark stand the stack's name and the function's."""
    return next(
        (name for name in ("Notices", "Drains", "Sweep", "Placement") if name in rest), "other"
    ).lower()


def _field(status: str, name: str) -> int | None:
    """Return a field of /proc/PID/status in bytes; None of a process that is a zombie by now."""
    for line in status.splitlines():
        key, _, value = line.partition(":")
        if key == name:
            return int(value.split()[0]) * 1024
    return None
