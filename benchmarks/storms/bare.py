"""Starts the bare client of `benchmarks/bare.py` as a process, and says when."""

from __future__ import annotations

import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from plimsoll_testbed.rigs.access import Access

THREADS: Final = 16
_SCRIPT: Final = Path(__file__).resolve().parents[1] / "bare.py"


@dataclass(frozen=True, slots=True)
class Client:
    """A client that has everything loaded and waits."""

    _process: subprocess.Popen[str]

    def go(self) -> None:
        """Let it begin."""
        assert self._process.stdin is not None
        self._process.stdin.write("go\n")
        self._process.stdin.close()

    @property
    def ended(self) -> bool:
        """Whether it has nothing more to send."""
        return self._process.poll() is not None

    def wait(self, seconds: float) -> str | None:
        """Wait until it has ended, or end it then; return what it could not do, if anything."""
        try:
            code = self._process.wait(seconds)
        except subprocess.TimeoutExpired:
            return f"it was not done after {seconds:.0f} s"
        return None if code == 0 else f"it ended with status {code}: see its message above"


@contextmanager
def client(way: Access, nodes: Sequence[str], *, evict: bool = False) -> Iterator[Client]:
    """Start a client for nodes; it is gone when the block ends."""
    with tempfile.NamedTemporaryFile("w", suffix=".pem", encoding="ascii") as ca:
        command = [sys.executable, str(_SCRIPT), way.url, way.token, str(THREADS), "--wait"]
        if way.ca is not None:
            ca.write(way.ca)
            ca.flush()
            command.append(f"--ca={ca.name}")
        if evict:
            command.append("--evict")
        with subprocess.Popen(
            [*command, *nodes], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        ) as process:
            try:
                assert process.stdout is not None
                process.stdout.readline()
                yield Client(process)
            finally:
                process.kill()
