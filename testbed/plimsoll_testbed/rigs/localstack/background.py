"""One LocalStack that runs on behind a terminal, with the built template deployed to it."""

from __future__ import annotations

import os
import sys
from contextlib import ExitStack

from plimsoll_testbed.rigs.background import Background, Running
from plimsoll_testbed.rigs.localstack.localstack import LocalStack
from plimsoll_testbed.rigs.workbench import Workbench


def place(bench: Workbench) -> Background[Running]:
    """Return where the LocalStack of this user runs, if it does."""
    return Background(
        what="LocalStack",
        folder=bench.cache / "localstack",
        start_seconds=LocalStack.ready_seconds + LocalStack.deploy_seconds,
        state=Running,
    )


def start(bench: Workbench) -> Running:
    """Start LocalStack and deploy to it, or return the one that runs.

    Raises:
        Refused: it does not start, or the deployment failed; the message says why.
    """
    return place(bench).start(__name__)


def _started(exits: ExitStack) -> Running:
    localstack = exits.enter_context(LocalStack())
    localstack.deploy(AcceptDrills="true", Size="small")
    return Running(pid=os.getpid(), url=localstack.url, log=str(localstack.log))


if __name__ == "__main__":
    place(Workbench.of_this_process()).hold(_started, ready=int(sys.argv[1]))
