"""One control plane that runs on behind a terminal: `plimsoll controlplane up` and `down`.

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
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from types import FrameType
from typing import IO, Final

from plimsoll.config import Workbench
from plimsoll.domain.errors import Refused
from plimsoll.drill.controlplane.plane import ControlPlane

START_SECONDS: Final = 240.0
"""Longer than what it waits for itself: it says why it does not start."""
STOP_SECONDS: Final = 20.0
_LOOK_SECONDS: Final = 0.1


@dataclass(frozen=True, slots=True, kw_only=True)
class Running:
    """A control plane that runs."""

    pid: int
    version: str
    url: str
    kubeconfig: str
    """Of its administrator."""
    log: str
    """A folder with a log for each program."""


def running(bench: Workbench) -> Running | None:
    """Return what runs; a file that a crash left behind is removed."""
    state = _state(bench)
    with _lock(bench) as free:
        if free:
            state.unlink(missing_ok=True)
            return None
    try:
        return Running(**json.loads(state.read_text(encoding="utf-8")))
    except FileNotFoundError:
        return None  # it holds the lock, and is not ready yet


def start(version: str, bench: Workbench) -> Running:
    """Start a control plane that outlives this process, and return when it is ready.

    Raises:
        Refused: one of another version runs, or it does not start; the message says why.
    """
    already = running(bench)
    if already is not None:
        if already.version != version:
            raise Refused(
                f"a control plane of Kubernetes {already.version} runs: stop it with `plimsoll "
                f"controlplane down`, then start {version}"
            )
        return already
    said = _folder(bench) / "background.log"
    reads, writes = os.pipe()
    with open(reads, "rb") as ended, said.open("wb") as log:  # noqa: PTH123 - a pipe
        subprocess.run(  # noqa: S603 - our own module
            [sys.executable, "-m", __name__, version, str(writes)],
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=subprocess.STDOUT,
            pass_fds=[writes],
            start_new_session=True,  # the terminal's Ctrl-C and end are not for it
            check=True,
        )
        os.close(writes)
        select.select([ended], [], [], START_SECONDS)
    found = running(bench)  # whoever started it: somebody else may have been faster
    if found is None or found.version != version:
        raise Refused(
            f"the control plane did not start:\n{said.read_text(errors='replace')[-4000:]}"
        )
    return found


def stop(bench: Workbench) -> Running | None:
    """Stop what runs and return what it was; None when nothing runs.

    Raises:
        Refused: it does not end.
    """
    found = running(bench)
    if found is None:
        return None
    os.kill(found.pid, signal.SIGTERM)
    end = time.monotonic() + STOP_SECONDS
    while running(bench) is not None:
        if time.monotonic() > end:
            raise Refused(f"the control plane (process {found.pid}) does not end: kill it")
        time.sleep(_LOOK_SECONDS)
    return found


def hold(version: str, bench: Workbench, ready: Callable[[], None]) -> None:
    """Run a control plane in this process until it is told to end.

    Args:
        version: of Kubernetes.
        bench: where it leaves word of itself.
        ready: called when others can find it.

    Raises:
        Refused: another one runs.
    """
    signal.signal(signal.SIGTERM, _end)
    signal.signal(signal.SIGINT, _end)
    state = _state(bench)
    with _lock(bench, patience=1.0) as free:  # whoever looks holds it for a moment
        if not free:
            raise Refused("another control plane runs or starts")
        try:
            with ControlPlane(version=version) as plane:
                here = Running(
                    pid=os.getpid(),
                    version=version,
                    url=plane.url,
                    kubeconfig=str(plane.kubeconfig()),
                    log=str(plane.log),
                )
                half = state.with_suffix(".half")
                half.write_text(json.dumps(asdict(here)), encoding="utf-8")
                half.rename(state)
                ready()
                while True:
                    signal.pause()
        finally:
            state.unlink(missing_ok=True)


def _end(number: int, frame: FrameType | None) -> None:
    del frame
    raise SystemExit(128 + number)


def _folder(bench: Workbench) -> Path:
    folder = bench.cache / "controlplane"
    folder.mkdir(parents=True, exist_ok=True)
    return folder


def _state(bench: Workbench) -> Path:
    return _folder(bench) / "running.json"


@contextmanager
def _lock(bench: Workbench, patience: float = 0.0) -> Iterator[bool]:
    """Take the lock of what runs, and tell whether it could be had within so many seconds."""
    end = time.monotonic() + patience
    with (_folder(bench) / "running.lock").open("a") as lock:
        while not (free := _taken(lock)) and time.monotonic() < end:
            time.sleep(_LOOK_SECONDS)
        yield free


def _taken(lock: IO[str]) -> bool:
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


if __name__ == "__main__":
    if os.fork():
        os._exit(0)  # what follows is nobody's child: its starter neither waits for it nor ends it
    hold(
        sys.argv[1],
        Workbench.of_this_process(),
        ready=partial(os.close, int(sys.argv[2])),
    )
