"""One thing of a kind that runs on behind a terminal, and is found again by whoever asks for it.

A process of its own holds it. As long as that lives it holds a lock; so a file that a crash left
behind is known for what it is, and a process that happens to have the old number is left alone.
"""

from __future__ import annotations

import fcntl
import json
import os
import select
import signal
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import FrameType
from typing import IO, Any, Final

from plimsoll.domain.errors import Refused

STOP_SECONDS: Final = 20.0
_LOOK_SECONDS: Final = 0.1


@dataclass(frozen=True, slots=True, kw_only=True)
class Background:
    """A place for one thing that runs in the background."""

    what: str
    """What it is, for messages: `control plane`."""
    folder: Path
    """Where it leaves word of itself."""
    start_seconds: float

    def told(self) -> dict[str, Any] | None:
        """Return what it left word of; None when nothing runs. What a crash left is removed."""
        with self._lock() as free:
            if free:
                self._state.unlink(missing_ok=True)
                return None
        try:
            told: dict[str, Any] = json.loads(self._state.read_text(encoding="utf-8"))
        except FileNotFoundError:
            return None  # it holds the lock, and is not ready yet
        return told

    def launch(self, command: Sequence[str | Path]) -> str:
        """Start a holder that outlives this process; return when it is ready, or has ended.

        Args:
            command: what holds it; the number of a descriptor is added, to be closed when it is
                ready (`detach`).

        Returns:
            What it said; whether it is there now says `told`.
        """
        self._made()
        said = self.folder / "background.log"
        reads, writes = os.pipe()
        with open(reads, "rb") as ended, said.open("wb") as log:  # noqa: PTH123 - a pipe
            subprocess.run(  # noqa: S603 - our own module
                [*command, str(writes)],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                pass_fds=[writes],
                start_new_session=True,  # the terminal's Ctrl-C and end are not for it
                check=True,
            )
            os.close(writes)
            select.select([ended], [], [], self.start_seconds)
        return said.read_text(errors="replace")[-4000:]

    def end(self, pid: int) -> None:
        """Stop the holder.

        Raises:
            Refused: it does not end.
        """
        os.kill(pid, signal.SIGTERM)
        until = time.monotonic() + STOP_SECONDS
        while self.told() is not None:
            if time.monotonic() > until:
                raise Refused(f"the {self.what} (process {pid}) does not end: kill it")
            time.sleep(_LOOK_SECONDS)

    @contextmanager
    def held(self) -> Iterator[Callable[[Mapping[str, Any]], None]]:
        """Hold the place until this process is told to end; yields how to leave word in it.

        Raises:
            Refused: another one is there.
        """
        signal.signal(signal.SIGTERM, _end)
        signal.signal(signal.SIGINT, _end)
        with self._lock(patience=1.0) as free:  # whoever looks holds it for a moment
            if not free:
                raise Refused(f"another {self.what} runs or starts")
            try:
                yield self._tell
            finally:
                self._state.unlink(missing_ok=True)

    def _tell(self, word: Mapping[str, Any]) -> None:
        half = self._state.with_suffix(".half")
        half.write_text(json.dumps(word), encoding="utf-8")
        half.rename(self._state)

    @property
    def _state(self) -> Path:
        return self.folder / "running.json"

    def _made(self) -> None:
        self.folder.mkdir(parents=True, exist_ok=True)

    @contextmanager
    def _lock(self, patience: float = 0.0) -> Iterator[bool]:
        """Take the lock, and tell whether it could be had within so many seconds."""
        self._made()
        until = time.monotonic() + patience
        with (self.folder / "running.lock").open("a") as lock:
            while not (free := _taken(lock)) and time.monotonic() < until:
                time.sleep(_LOOK_SECONDS)
            yield free


def detach() -> None:
    """Leave the starter's family: it neither waits for what follows nor ends it."""
    if os.fork():
        os._exit(0)


def wait_for_the_end() -> None:
    """Wait until a signal ends this process."""
    while True:
        signal.pause()


def _end(number: int, frame: FrameType | None) -> None:
    del frame
    raise SystemExit(128 + number)


def _taken(lock: IO[str]) -> bool:
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True
