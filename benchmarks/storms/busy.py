"""Keeps a share of the processors busy, evenly, as long as its parent lives.

Plimsoll's functions and their emulator run on the cores of the control plane, where AWS would give them others. A rival that is
played beside as busy a process has the same control plane.

    .venv/bin/python benchmarks/storms/busy.py SHARE
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import Final

PERIOD: Final = 0.02
"""Seconds: a share of each is used, so nobody waits for a processor longer than that."""


@contextmanager
def busy(cores: float) -> Iterator[None]:
    """Keep so many cores busy while the block lasts, each of the machine's for an equal share."""
    count = os.cpu_count() or 1
    with ExitStack() as exits:
        for _ in range(count if cores else 0):
            command = [sys.executable, __file__, str(cores / count)]
            process = exits.enter_context(subprocess.Popen(command))
            exits.callback(process.kill)
        yield


def _burn(share: float) -> None:
    parent = os.getppid()
    while os.getppid() == parent:
        began, used = time.perf_counter(), time.process_time()
        while time.process_time() - used < share * PERIOD:
            pass
        time.sleep(max(0.0, PERIOD - (time.perf_counter() - began)))


if __name__ == "__main__":
    _burn(float(sys.argv[1]))
