"""Commands that a person runs: one a line, each word quoted, as many as a recommendation has room for."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from typing import Final

from plimsoll_service.wire.advice import MOST_WORDS

_ROOM: Final = MOST_WORDS - len(f"# and {2**53} more")


def commands(found: Sequence[Sequence[str]]) -> str:
    """Return commands as lines for a shell; a comment counts those that there is no room for."""
    lines, size = list[str](), 0
    for each in found:
        line = shlex.join(each)
        size += len(line) + 1
        if size > _ROOM:
            return "\n".join([*lines, f"# and {len(found) - len(lines)} more"])
        lines.append(line)
    return "\n".join(lines)
