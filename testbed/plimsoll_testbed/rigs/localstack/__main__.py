"""One LocalStack that runs on behind a terminal, with the built template deployed to it.

`make localstack` calls `python -m plimsoll_testbed.rigs.localstack up|down`. Standard output carries
lines for a shell, and nothing else; everything for people goes to standard error.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from contextlib import ExitStack

from plimsoll.domain.errors import Refused
from plimsoll_testbed.rigs.background import Background, Running
from plimsoll_testbed.rigs.emulated.emulator import ACCOUNT, REGION
from plimsoll_testbed.rigs.localstack.localstack import LocalStack
from plimsoll_testbed.rigs.workbench import Workbench


def main(arguments: list[str]) -> int:
    """Start or stop the LocalStack of this user; return the exit status."""
    place = Background(
        what="LocalStack",
        folder=Workbench.of_this_process().cache / "localstack",
        start_seconds=LocalStack.ready_seconds + LocalStack.deploy_seconds,
        state=Running,
    )
    try:
        match arguments:
            case ["up"]:
                found = place.start(str(__package__), "hold")
                sys.stderr.write(
                    f"LocalStack runs at {found.url} (process {found.pid}, log {found.log})\n"
                )
                for name, value in _exports(found.url).items():
                    sys.stdout.write(f"export {name}={value}\n")
            case ["down"]:
                stopped = place.stop()
                said = "nothing runs" if stopped is None else f"stopped LocalStack at {stopped.url}"
                sys.stderr.write(f"{said}\n")
            case ["hold", ready]:  # what `up` starts
                place.hold(_started, ready=int(ready))
            case _:
                sys.stderr.write("usage: python -m plimsoll_testbed.rigs.localstack up|down\n")
                return 2
    except Refused as refusal:
        sys.stderr.write(f"{refusal}\n")
        return 2
    return 0


def _started(exits: ExitStack) -> Running:
    localstack = exits.enter_context(LocalStack())
    localstack.deploy(
        AcceptDrills="true", Size="small", RedrivePrincipals=f"arn:aws:iam::{ACCOUNT}:root"
    )
    return Running(pid=os.getpid(), url=localstack.url, log=str(localstack.log))


def _exports(url: str) -> Mapping[str, str]:
    """Return what lets the AWS CLI, boto3 and `plimsoll` find it."""
    return {
        "AWS_ENDPOINT_URL": url,
        "AWS_ACCESS_KEY_ID": ACCOUNT,
        "AWS_SECRET_ACCESS_KEY": "none",
        "AWS_DEFAULT_REGION": REGION,
        "AWS_REGION": REGION,
    }


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
