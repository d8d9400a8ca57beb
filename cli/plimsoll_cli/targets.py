"""Files for the results of a command, checked before the work."""

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
        raise BadInput(f"{option} {name} is a directory: give a file")
    if not path.parent.is_dir():
        raise BadInput(f"{option} {name}: there is no directory {path.parent}: create it first")
    if not os.access(path if path.exists() else path.parent, os.W_OK):
        raise BadInput(f"{option} {name} cannot be written: give another file")


def write_target(option: str, name: str, text: str) -> None:
    """Write a file.

    Raises:
        BadInput: it cannot be written.
    """
    try:
        Path(name).write_text(text, encoding="utf-8")
    except OSError as error:
        raise BadInput(f"{option} {name}: {error.strerror}") from error
