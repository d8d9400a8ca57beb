"""`python -m plimsoll_testbed.rigs.localstack up|down`, which is what `make localstack` calls.

Standard output carries lines for a shell, and nothing else; everything for people goes to standard
error.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping

from plimsoll.domain.errors import Refused
from plimsoll_testbed.rigs.emulated.emulator import ACCOUNT, REGION
from plimsoll_testbed.rigs.localstack import background
from plimsoll_testbed.rigs.workbench import Workbench


def main(arguments: list[str]) -> int:
    """Start or stop the LocalStack of this user; return the exit status."""
    bench = Workbench.of_this_process()
    try:
        match arguments:
            case ["up"]:
                found = background.start(bench)
                sys.stderr.write(
                    f"LocalStack runs at {found.url} (process {found.pid}, log {found.log})\n"
                )
                for name, value in _exports(found.url).items():
                    sys.stdout.write(f"export {name}={value}\n")
            case ["down"]:
                stopped = background.place(bench).stop()
                said = "nothing runs" if stopped is None else f"stopped LocalStack at {stopped.url}"
                sys.stderr.write(f"{said}\n")
            case _:
                sys.stderr.write("usage: python -m plimsoll_testbed.rigs.localstack up|down\n")
                return 2
    except Refused as refusal:
        sys.stderr.write(f"{refusal}\n")
        return 2
    return 0


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
