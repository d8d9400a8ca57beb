"""One thing of a kind that runs on behind a terminal, and is found again by whoever asks for it.

A process of its own holds it. While that process lives it holds a lock, so a state file that a crash
left behind is recognised, and a process that happens to have the old number is left alone.
"""

from __future__ import annotations

import fcntl
import json
import os
import select
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from types import FrameType
from typing import IO, Final

from plimsoll.domain.errors import Refused

STOP_SECONDS: Final = 20.0
_POLL_SECONDS: Final = 0.1


@dataclass(frozen=True, slots=True, kw_only=True)
class Running:
    """Something that runs in the background."""

    pid: int
    """Of the process that holds it."""
    url: str
    log: str
    """Its log, or a folder with a log for each program."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Background[R: Running]:
    """A place for one thing that runs in the background."""

    what: str
    """What it is, for messages: `control plane`."""
    folder: Path
    """Where it leaves its state file, lock and log."""
    start_seconds: float
    state: type[R]

    def running(self) -> R | None:
        """Return what runs; None when nothing does. A state file that a crash left is removed."""
        with self._lock() as free:
            if free:
                self._file.unlink(missing_ok=True)
                return None
        try:
            return self.state(**json.loads(self._file.read_text(encoding="utf-8")))
        except FileNotFoundError:
            return None  # it holds the lock, and is not ready yet

    def start(self, module: str, *arguments: str) -> R:
        """Return what runs, or start it so that it outlives this process.

        Args:
            module: run as a program, with the arguments and the number of a file descriptor that
                `hold` closes when it is ready.
            arguments: for the module.

        Raises:
            Refused: it does not start; the message says why.
        """
        already = self.running()
        if already is not None:
            return already
        log = self.folder / "background.log"
        reads, writes = os.pipe()
        with open(reads, "rb") as ended, log.open("wb") as said:  # noqa: PTH123 - a pipe
            subprocess.run(  # noqa: S603 - our own module
                [sys.executable, "-m", module, *arguments, str(writes)],
                stdin=subprocess.DEVNULL,
                stdout=said,
                stderr=subprocess.STDOUT,
                pass_fds=[writes],
                start_new_session=True,  # the terminal's Ctrl-C and end are not for it
                check=True,
            )
            os.close(writes)
            select.select([ended], [], [], self.start_seconds)
        found = self.running()  # whoever started it: somebody else may have been faster
        if found is None:
            text = log.read_text(errors="replace")[-4000:]
            raise Refused(f"the {self.what} did not start:\n{text}")
        return found

    def stop(self) -> R | None:
        """Stop what runs and return what it was; None when nothing runs.

        Raises:
            Refused: it does not end.
        """
        found = self.running()
        if found is None:
            return None
        os.kill(found.pid, signal.SIGTERM)
        until = time.monotonic() + STOP_SECONDS
        while self.running() is not None:
            if time.monotonic() > until:
                raise Refused(f"the {self.what} (process {found.pid}) does not end: kill it")
            time.sleep(_POLL_SECONDS)
        return found

    def hold(self, start: Callable[[ExitStack], R], *, ready: int) -> None:
        """Leave the starter's process family, run the thing, and end when a signal comes.

        Args:
            start: starts it; the stack stops it.
            ready: the file descriptor to close when others can find it.

        Raises:
            Refused: another one runs, or this one does not start.
        """
        if os.fork():
            os._exit(0)  # the starter neither waits for what follows nor ends it
        signal.signal(signal.SIGTERM, _end)
        signal.signal(signal.SIGINT, _end)
        with self._lock(patience=1.0) as free:  # whoever asks holds it for a moment
            if not free:
                raise Refused(f"another {self.what} runs or starts")
            with ExitStack() as exits:
                exits.callback(self._file.unlink, missing_ok=True)
                half = self._file.with_suffix(".half")
                half.write_text(json.dumps(asdict(start(exits))), encoding="utf-8")
                half.rename(self._file)
                os.close(ready)
                while True:
                    signal.pause()

    @property
    def _file(self) -> Path:
        return self.folder / "running.json"

    @contextmanager
    def _lock(self, patience: float = 0.0) -> Iterator[bool]:
        """Take the lock, and tell whether it could be had within so many seconds."""
        self.folder.mkdir(parents=True, exist_ok=True)
        until = time.monotonic() + patience
        with (self.folder / "running.lock").open("a") as lock:
            while not (free := _taken(lock)) and time.monotonic() < until:
                time.sleep(_POLL_SECONDS)
            yield free


def _end(number: int, frame: FrameType | None) -> None:
    del frame
    raise SystemExit(128 + number)


def _taken(lock: IO[str]) -> bool:
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True
