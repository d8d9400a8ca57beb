"""Runs a command for exactly as long as its starter lives; a script of its own, standard library only.

    python supervisor.py FOLDER COMMAND...

Standard input is the leash: when it ends, because the starter closed it, crashed or was killed,
the command's whole process group is stopped and FOLDER is removed. Until then each byte that comes
is the number of a signal for the command. A signal handler or `atexit` in
the starter would miss SIGKILL; Linux's parent-death signal alone would miss grandchildren, other
systems, and a starter whose starting *thread* ended.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import select
import shutil
import signal
import subprocess
import sys

_PR_SET_PDEATHSIG = 1
_GRACE_SECONDS = 1.0
_POLL_SECONDS = 0.2


def main(folder: str, command: list[str]) -> int:
    """Run the command until it ends, which leaves FOLDER to the starter, or the leash does."""
    for number in (signal.SIGINT, signal.SIGHUP, signal.SIGTERM):
        signal.signal(number, signal.SIG_IGN)  # the leash decides, not the terminal
    child = subprocess.Popen(  # noqa: S603 - the rig's own command
        command,
        stdin=subprocess.DEVNULL,
        preexec_fn=_as_child,  # noqa: PLW1509 - this process has one thread
    )
    while child.poll() is None:
        if _cut(child):
            _end_group(child, folder)
    os.killpg(0, signal.SIGTERM)  # what it started and left behind
    return child.returncode


def _as_child() -> None:
    """Before exec: ordinary signals again, and an end with the leash should that be killed."""
    for number in (signal.SIGINT, signal.SIGHUP, signal.SIGTERM):
        signal.signal(number, signal.SIG_DFL)
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)


def _cut(child: subprocess.Popen[bytes]) -> bool:
    """Wait a moment for the starter; pass on what it says, and return whether it is gone."""
    readable, _, _ = select.select([sys.stdin], [], [], _POLL_SECONDS)
    if not readable:
        return False
    said = os.read(sys.stdin.fileno(), 1024)
    for number in said:
        child.send_signal(number)
    return not said


def _end_group(child: subprocess.Popen[bytes], folder: str) -> None:
    """Ask the group to end, then make it, this process included."""
    os.killpg(0, signal.SIGTERM)
    with contextlib.suppress(subprocess.TimeoutExpired):
        child.wait(_GRACE_SECONDS)
    shutil.rmtree(folder, ignore_errors=True)
    os.killpg(0, signal.SIGKILL)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], sys.argv[2:]))
