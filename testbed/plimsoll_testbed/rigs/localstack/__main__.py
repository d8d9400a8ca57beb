"""`python -m plimsoll_testbed.rigs.localstack up|down`, which is what `make localstack` calls.

Standard output carries lines for a shell, and nothing else; everything for people goes to standard
error.
"""

from __future__ import annotations

import sys

from plimsoll.domain.errors import Refused
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
                for name, value in found.exports.items():
                    sys.stdout.write(f"export {name}={value}\n")
            case ["down"]:
                stopped = background.stop(bench)
                said = "nothing runs" if stopped is None else f"stopped LocalStack at {stopped.url}"
                sys.stderr.write(f"{said}\n")
            case _:
                sys.stderr.write("usage: python -m plimsoll_testbed.rigs.localstack up|down\n")
                return 2
    except Refused as refusal:
        sys.stderr.write(f"{refusal}\n")
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
