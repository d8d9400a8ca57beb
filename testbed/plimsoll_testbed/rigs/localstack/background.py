"""One LocalStack that runs on behind a terminal, with the built template deployed to it.

Where a container engine answers it is the ordinary image, started by compose; else it is our own.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from functools import partial
from typing import Final

from plimsoll.domain.errors import Refused
from plimsoll_testbed.rigs.background import Background, detach, wait_for_the_end
from plimsoll_testbed.rigs.emulated.emulator import ACCOUNT, REGION
from plimsoll_testbed.rigs.localstack.composed import ComposedLocalStack, engine_answers
from plimsoll_testbed.rigs.localstack.localstack import LocalStack
from plimsoll_testbed.rigs.workbench import Workbench

START_SECONDS: Final = LocalStack.ready_seconds + LocalStack.deploy_seconds


@dataclass(frozen=True, slots=True, kw_only=True)
class Running:
    """A LocalStack that runs."""

    pid: int
    url: str
    log: str

    @property
    def exports(self) -> Mapping[str, str]:
        """What lets the AWS CLI, boto3 and `plimsoll` find it."""
        return {
            "AWS_ENDPOINT_URL": self.url,
            "AWS_ACCESS_KEY_ID": ACCOUNT,
            "AWS_SECRET_ACCESS_KEY": "none",
            "AWS_DEFAULT_REGION": REGION,
            "AWS_REGION": REGION,
        }


def running(bench: Workbench) -> Running | None:
    """Return what runs; a file that a crash left behind is removed."""
    told = _place(bench).told()
    return None if told is None else Running(**told)


def start(bench: Workbench) -> Running:
    """Start LocalStack and deploy to it, or return the one that runs.

    Raises:
        Refused: it does not start, or the deployment failed; the message says why.
    """
    already = running(bench)
    if already is not None:
        return already
    said = _place(bench).launch([sys.executable, "-m", __name__])
    found = running(bench)
    if found is None:
        raise Refused(f"LocalStack did not start:\n{said}")
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


def hold(bench: Workbench, ready: Callable[[], None]) -> None:
    """Run LocalStack in this process until it is told to end.

    Raises:
        Refused: another one runs, or this one does not start.
    """
    kind = ComposedLocalStack if engine_answers() else LocalStack
    with _place(bench).held() as tell, kind() as localstack:
        localstack.deploy(AcceptDrills="true", Size="small")
        tell(asdict(Running(pid=os.getpid(), url=localstack.url, log=str(localstack.log))))
        ready()
        wait_for_the_end()


def _place(bench: Workbench) -> Background:
    return Background(
        what="LocalStack", folder=bench.cache / "localstack", start_seconds=START_SECONDS
    )


if __name__ == "__main__":
    detach()
    hold(Workbench.of_this_process(), ready=partial(os.close, int(sys.argv[1])))
