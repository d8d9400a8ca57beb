"""One control plane that runs on behind a terminal: `plimsoll controlplane up` and `down`."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from dataclasses import asdict, dataclass
from functools import partial
from typing import Final

from plimsoll.domain.errors import Refused
from plimsoll_testbed.rigs.background import Background, detach, wait_for_the_end
from plimsoll_testbed.rigs.controlplane.plane import ControlPlane
from plimsoll_testbed.rigs.workbench import Workbench

START_SECONDS: Final = 240.0
"""Longer than what it waits for itself: it says why it does not start."""


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
    told = _place(bench).told()
    return None if told is None else Running(**told)


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
    said = _place(bench).launch([sys.executable, "-m", __name__, version])
    found = running(bench)  # whoever started it: somebody else may have been faster
    if found is None or found.version != version:
        raise Refused(f"the control plane did not start:\n{said}")
    return found


def stop(bench: Workbench) -> Running | None:
    """Stop what runs and return what it was; None when nothing runs.

    Raises:
        Refused: it does not end.
    """
    found = running(bench)
    if found is not None:
        _place(bench).end(found.pid)
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
    with _place(bench).held() as tell, ControlPlane(version=version) as plane:
        here = Running(
            pid=os.getpid(),
            version=version,
            url=plane.url,
            kubeconfig=str(plane.kubeconfig()),
            log=str(plane.log),
        )
        tell(asdict(here))
        ready()
        wait_for_the_end()


def _place(bench: Workbench) -> Background:
    return Background(
        what="control plane", folder=bench.cache / "controlplane", start_seconds=START_SECONDS
    )


if __name__ == "__main__":
    detach()
    hold(
        sys.argv[1],
        Workbench.of_this_process(),
        ready=partial(os.close, int(sys.argv[2])),
    )
