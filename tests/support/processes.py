"""What runs on this machine, for tests that nothing is left behind. Linux only: it reads /proc."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path


def alive(folder: Path) -> Iterator[int]:
    """Yield the processes that live in a folder, by their environment or command line."""
    for process in Path("/proc").glob("[0-9]*"):
        try:
            said = (process / "environ").read_bytes() + (process / "cmdline").read_bytes()
        except OSError:  # it has ended, or is not ours
            continue
        if str(folder).encode() in said:
            yield int(process.name)
