"""PreStop hooks that sleep: how long a container is at least kept from SIGTERM.

The kubelet runs the hooks of all containers of a pod at the same time, those of native sidecars too, before it lets a sidecar
wait for the others. So the longest counts:
https://kubernetes.io/docs/concepts/containers/container-lifecycle-hooks/#container-hooks
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import pairwise
from shlex import shlex
from typing import Any, Final

from plimsoll.adapters.kubernetes.objects.metadata import LONGEST_GRACE, bounded
from plimsoll.adapters.kubernetes.scheduling import stays

_SHELLS: Final = frozenset({"ash", "bash", "dash", "sh"})
_LINE: Final = re.compile(r"-[a-z]*c")
"""The option of a shell that a line of commands follows."""
_LONGEST_LINE: Final = 2_000
"""Characters of a line that are read: owners of pods write them."""
_SLEEP: Final = re.compile(r"(?:^|[\s;&|(/])sleep\s+[0-9$]")
_TIME: Final = re.compile(r"([0-9]{1,6}(?:\.[0-9]{1,6})?)([smhd]?)")
_UNITS: Final = {"": 1, "s": 1, "m": 60, "h": 3_600, "d": 86_400}
_ENDS: Final = re.compile(r"[;\n]+|&&\n*")
"""What ends a command so that the next one follows in any case, or once it has succeeded."""
_CONDITIONS: Final = frozenset({"[", "[[", "test"})
_UNSURE: Final = frozenset(
    {"!", "case", "exit", "for", "function", "if", "return", "select", "until", "while", "{"}
)
"""First words after which nobody knows whether a command runs."""


def hook_seconds(spec: Any) -> int | None:
    """Return for how long the longest preStop hook of a pod sleeps at least; None: no hook sleeps."""
    return max(_hooks(spec), default=None)


def _hooks(spec: Any) -> Iterator[int]:
    sidecars = filter(stays, getattr(spec, "init_containers", ()))
    lifecycles = (c.lifecycle for c in (*sidecars, *getattr(spec, "containers", ())))
    for hook in (lifecycle.pre_stop for lifecycle in lifecycles if lifecycle is not None):
        if hook.sleep is not None and hook.sleep.seconds > 0:
            yield bounded(hook.sleep.seconds, LONGEST_GRACE)
        elif hook.exec is not None:
            yield from _slept_in(hook.exec.command)


def _slept_in(command: Sequence[str]) -> Iterator[int]:
    """Yield how long a command sleeps, if it is `sleep N`, or a shell that is given a line with it."""
    name, words = (command[0].rpartition("/")[2], command[1:]) if command else ("", ())
    if name == "sleep":
        yield min(_seconds(words), LONGEST_GRACE)
    elif name in _SHELLS and any(map(_SLEEP.search, words)):
        lines = (line for option, line in pairwise(words) if _LINE.fullmatch(option))
        yield min(_least(next(lines, "")), LONGEST_GRACE)


def _least(line: str) -> int:
    """Return the seconds that a line of commands sleeps for sure: up to where it branches, loops or ends."""
    total, command = 0, list[str]()
    try:
        for word in (*_words(line), ";"):
            if not _ENDS.fullmatch(word):
                command.append(word)
                continue
            if command[:1] == ["exec"]:
                command = command[1:]
            first = command[0] if command else ""
            if (
                first in _UNSURE
                or "(" in command
                or (word.startswith("&") and first in _CONDITIONS)
            ):
                break
            total += _seconds(command[1:]) if first.rpartition("/")[2] == "sleep" else 0
            command = []
    except ValueError:  # a quotation that does not end
        return 0
    return total


def _words(line: str) -> shlex:
    words = shlex(line[:_LONGEST_LINE], posix=True, punctuation_chars=";&|()<>\n")
    words.whitespace = " \t\r"
    words.commenters = ""
    return words


def _seconds(times: Sequence[str]) -> int:
    """Return the sum of the times that `sleep` is given; 0 where one is no number."""
    found = [_TIME.fullmatch(time) for time in times]
    return int(sum(float(each[1]) * _UNITS[each[2]] for each in found if each)) if all(found) else 0
