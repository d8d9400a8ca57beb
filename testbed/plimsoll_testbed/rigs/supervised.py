"""A server of a rig that lives exactly as long as this process (`plimsoll_testbed.rigs.supervisor`)."""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from plimsoll.domain.errors import Refused
from plimsoll_testbed.rigs import supervisor

TAIL: Final = 3000
"""How much of a log an error quotes, in characters."""
PORT_ATTEMPTS: Final = 3


@dataclass(slots=True, kw_only=True)
class SupervisedProcess:
    """One program with its log."""

    name: str
    command: Sequence[str | Path]
    folder: Path
    """Removed by the supervisor should this process crash."""
    log: Path
    """Added to at every start."""
    environment: Mapping[str, str] = field(default_factory=dict)
    """Beside what every program here is told."""
    _process: subprocess.Popen[bytes] | None = field(init=False, default=None)

    def start(self) -> None:
        """Start it, with nothing of the caller's environment."""
        with self.log.open("ab") as log:
            self._process = subprocess.Popen(  # noqa: S603 - the rig's own command
                [sys.executable, "-I", "-S", supervisor.__file__, self.folder, *self.command],
                cwd=self.folder,
                env=environment(self.folder) | dict(self.environment),
                stdin=subprocess.PIPE,
                stdout=log,
                stderr=subprocess.STDOUT,
                start_new_session=True,  # Ctrl-C is for this process, the supervisor for that one
            )

    @property
    def ended(self) -> bool:
        """Whether it was started and ended by itself."""
        return self._process is not None and self._process.poll() is not None

    def end(self, *, by_force: bool = False) -> None:
        """Let the supervisor end it, or kill both at once. Twice is once."""
        process, self._process = self._process, None
        if process is None:
            return
        if by_force:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)  # the supervisor leads the group
        assert process.stdin is not None  # noqa: S101 - it was opened as a pipe
        process.stdin.close()
        process.wait()

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


def environment(folder: Path) -> dict[str, str]:
    """Return an environment with nothing of the caller's: no account, no proxy, no PYTHONPATH."""
    return {
        "PATH": "/usr/bin:/bin",
        "HOME": str(folder),
        "TMPDIR": str(folder),
        "LANG": "C.UTF-8",
    }


def start_on_free_ports(start: Callable[[], None], stop: Callable[[], None]) -> None:
    """Start something, again where somebody took one of its ports before it was opened.

    Raises:
        Refused: it does not start; then it is stopped.
    """
    for attempt in range(1, PORT_ATTEMPTS + 1):
        try:
            return start()
        except BaseException as error:
            stop()
            taken = isinstance(error, Refused) and "already in use" in str(error)
            if attempt == PORT_ATTEMPTS or not taken:
                raise
    return None


def free_port() -> int:
    """Return a port of loopback that is free now; somebody may take it before it is opened."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
    return port


def listens(port: int) -> bool:
    """Whether anybody takes connections there."""
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0
