"""The code that one spot notice runs through: frames on the stack, functions and calls.

Only our own code counts: files of `functions` and `plimsoll`. Run it from the repository:

    .venv/bin/python -m benchmarks.notice_path [--calls]
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Final

from tests.support.notice_trace import traced

ROOT: Final = Path(__file__).resolve().parents[1]


def main() -> None:
    """Print the figures, and with `--calls` every function."""
    trace = traced()
    print(f"{len(trace.at_patch)} frames of ours when the PATCH is sent")
    print(f"{trace.calls.total()} calls to {len(trace.calls)} functions of ours in all")
    print("\n".join(f"  {name}" for name in trace.at_patch))
    if "--calls" in sys.argv:
        for code, count in trace.calls.most_common():
            print(f"{count:4} {Path(code.co_filename).relative_to(ROOT)} {code.co_qualname}")


if __name__ == "__main__":
    main()
