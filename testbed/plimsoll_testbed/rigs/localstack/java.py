"""The Java that DynamoDB Local runs on."""

from __future__ import annotations

import re
import shutil
import subprocess
from typing import Final

from plimsoll.domain.errors import Refused

LEAST: Final = 17
_VERSION: Final = re.compile(r'version "(?:1\.)?(\d+)')
_CURE: Final = (
    f"DynamoDB Local needs Java {LEAST} or newer on PATH. Install it (Debian, Ubuntu: apt install "
    "openjdk-17-jre-headless; macOS: brew install openjdk), then run the same command again"
)


def java(path: str | None = None) -> str:
    """Return the `java` that a PATH finds, this process's where it is None.

    Raises:
        Refused: there is none, or it is too old; the message says what to do.
    """
    found = shutil.which("java", path=path)
    if found is None:
        raise Refused(f"there is no java. {_CURE}")
    said = subprocess.run(  # noqa: S603 - the Java of this machine
        [found, "-version"], capture_output=True, text=True, check=False
    ).stderr
    version = _VERSION.search(said)
    if version is None or int(version.group(1)) < LEAST:
        what = version.group(1) if version else f"no version: {said.strip()[:200]!r}"
        raise Refused(f"{found} says {what}. {_CURE}")
    return found
