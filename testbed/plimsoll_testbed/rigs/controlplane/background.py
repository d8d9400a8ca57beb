"""One control plane that runs on behind a terminal: `plimsoll controlplane up` and `down`."""

from __future__ import annotations

import os
import sys
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial
from typing import Final

from plimsoll.domain.errors import Refused
from plimsoll_testbed.rigs import background
from plimsoll_testbed.rigs.controlplane.plane import ControlPlane
from plimsoll_testbed.rigs.workbench import Workbench

START_SECONDS: Final = 240.0
"""Longer than what it waits for itself: it says why it does not start."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Running(background.Running):
    """A control plane that runs."""

    version: str
    kubeconfig: str
    """Of its administrator."""


def place(bench: Workbench) -> background.Background[Running]:
    """Return where the control plane of this user runs, if it does."""
    return background.Background(
        what="control plane",
        folder=bench.cache / "controlplane",
        start_seconds=START_SECONDS,
        state=Running,
    )


def start(version: str, bench: Workbench) -> Running:
    """Start a control plane that outlives this process, and return when it is ready.

    Raises:
        Refused: one of another version runs, or it does not start; the message says why.
    """
    found = place(bench).start(__name__, version)
    if found.version != version:
        raise Refused(
            f"a control plane of Kubernetes {found.version} runs: stop it with `plimsoll "
            f"controlplane down`, then start {version}"
        )
    return found


def _started(version: str, exits: ExitStack) -> Running:
    plane = exits.enter_context(ControlPlane(version=version))
    return Running(
        pid=os.getpid(),
        version=version,
        url=plane.url,
        kubeconfig=str(plane.kubeconfig()),
        log=str(plane.log),
    )


if __name__ == "__main__":
    place(Workbench.of_this_process()).hold(partial(_started, sys.argv[1]), ready=int(sys.argv[2]))
