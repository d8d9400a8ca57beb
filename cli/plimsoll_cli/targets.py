"""Files that a command writes its results to: refused before the work, and not after it."""

from __future__ import annotations

import os
from pathlib import Path

from plimsoll.domain.errors import BadInput


def check_target(option: str, name: str) -> None:
    """Refuse a file that cannot be written.

    Raises:
        BadInput: it is a directory, or may not be written, or has no directory.
    """
    path = Path(name)
    if path.is_dir():
        raise BadInput(f"{option} {name}: that is a directory; name a file")
    if not path.parent.is_dir():
        raise BadInput(f"{option} {name}: there is no directory {path.parent}; make it first")
    if not os.access(path if path.exists() else path.parent, os.W_OK):
        raise BadInput(f"{option} {name}: it cannot be written; choose another file")


def write_target(option: str, name: str, text: str) -> None:
    """Write a file.

    Raises:
        BadInput: it cannot be written.
    """
    try:
        Path(name).write_text(text, encoding="utf-8")
    except OSError as error:
        raise BadInput(f"{option} {name}: {error.strerror}") from error
