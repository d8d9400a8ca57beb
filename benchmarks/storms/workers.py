"""The processes of the functions in a storm: how many there are, and what memory they take."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, Self, override

from plimsoll_testbed.rigs.emulated.emulator import Emulator
from plimsoll_testbed.rigs.emulated.ministack import MiniStack

SIZES: Final = {"small": 3, "usual": 10}
"""The template's Size -> how many batches of notices, and how many wake-ups, are handled at once, each by
a process. `large`, with 50, is left out: all would have to start at once, and that wants many cores."""
POLL_SECONDS: Final = 1.0
_PROC: Final = Path("/proc")
_MARK: Final = "ministack-lambda-"


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


@dataclass(slots=True)
class Memory(AbstractContextManager["Memory"]):
    """Looks at the functions' processes of one emulator once a second. It needs Linux' /proc.

    Args:
        folder: the emulator's, in which each of them runs a script.
    """

    folder: Path
    _peaks: dict[str, dict[int, int]] = field(init=False, default_factory=dict)
    _ended: threading.Event = field(init=False, default_factory=threading.Event)
    _thread: threading.Thread = field(init=False)

    @override
    def __enter__(self) -> Self:
        self._thread = threading.Thread(target=self._run, name="memory", daemon=True)
        self._thread.start()
        return self

    @override
    def __exit__(self, *_: object) -> None:
        self._ended.set()
        self._thread.join()

    def peaks(self) -> Mapping[str, Peak]:
        """Return what was seen, by function, also of processes that are gone."""
        return {
            function: Peak(
                processes=len(peaks), most=max(peaks.values()), total=sum(peaks.values())
            )
            for function, peaks in sorted(self._peaks.items())
        }

    def _run(self) -> None:
        while not self._ended.is_set():
            self._look()
            self._ended.wait(POLL_SECONDS)

    def _look(self) -> None:
        place = f"{self.folder}/{_MARK}"
        for process in _PROC.glob("[0-9]*"):
            try:
                command = (process / "cmdline").read_bytes().decode(errors="replace")
                if place not in command:
                    continue
                status = (process / "status").read_text()
            except OSError:  # it ended meanwhile
                continue
            peak = _field(status, "VmHWM")
            if peak is not None:
                function = _function(command.partition(place)[2])
                self._peaks.setdefault(function, {})[int(process.name)] = peak


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
