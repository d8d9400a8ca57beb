"""A server of a rig that lives exactly as long as this process (`plimsoll_testbed.rigs.emulated.supervisor`)."""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from plimsoll_testbed.rigs.emulated import supervisor

TAIL: Final = 2500
"""How much of a log an error quotes, in characters."""


@dataclass(slots=True, kw_only=True)
class SupervisedProcess:
    """One program with its log. It keeps nothing worth a graceful end: stopping is SIGKILL."""

    name: str
    command: Sequence[str | Path]
    folder: Path
    """Removed by the supervisor should this process crash."""
    log: Path
    """Added to at every start."""
    _process: subprocess.Popen[bytes] | None = field(init=False, default=None)

    def start(self) -> None:
        """Start it, with nothing of the caller's environment."""
        with self.log.open("ab") as log:
            self._process = subprocess.Popen(  # noqa: S603 - the rig's own command
                [sys.executable, "-I", "-S", supervisor.__file__, self.folder, *self.command],
                cwd=self.folder,
                env={"PATH": "/usr/bin:/bin", "HOME": str(self.folder), "LANG": "C.UTF-8"},
                stdin=subprocess.PIPE,
                stdout=log,
                stderr=subprocess.STDOUT,
                start_new_session=True,  # Ctrl-C is for this process, the supervisor for that one
            )

    @property
    def ended(self) -> bool:
        """Whether it was started and ended by itself."""
        return self._process is not None and self._process.poll() is not None

    def kill(self) -> None:
        """Kill it and its supervisor at once. Twice is once."""
        process, self._process = self._process, None
        if process is None:
            return
        with contextlib.suppress(ProcessLookupError):
            os.killpg(
                process.pid, signal.SIGKILL
            )  # the supervisor leads the group of what it started
        process.wait()
        assert process.stdin is not None  # noqa: S101 - it was opened as a pipe
        process.stdin.close()

    def tell(self, number: signal.Signals) -> None:
        """Send a signal to the program alone, by its supervisor."""
        if self._process is not None:
            assert self._process.stdin is not None  # noqa: S101 - it was opened as a pipe
            self._process.stdin.write(bytes([number]))
            self._process.stdin.flush()

    def tail(self) -> str:
        """Return the end of its log, under its name."""
        return tail_of(self.name, self.log)


def tail_of(name: str, log: Path) -> str:
    """Return the end of a program's log, under its name."""
    text = log.read_text(errors="replace") if log.exists() else ""
    return f"--- {name} ({log})\n{text[-TAIL:]}"


def listens(port: int) -> bool:
    """Whether anybody takes connections there."""
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0
