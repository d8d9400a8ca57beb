"""What functions log, as sentences for people who watch a drill.

Both rigs tell the same: one hears the services directly, the other reads the log of the functions.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

ROUTINE: Final = frozenset({"another reconcile is at work"})
"""Messages that are true all the time, and tell a watcher nothing."""

_STEPS: Final = {
    "acted": "",
    "action not done": "not done: ",
    "was gone already": "needless: ",
    "would act": "would ",
}
"""Messages about one action, and how its sentence begins."""


def sentence(message: str, facts: Mapping[str, object]) -> str:
    """Return a log entry in words: what was done, and why.

    Args:
        message: its message; one that is not known here is followed by its facts.
        facts: its other fields.
    """
    why = f": {facts['because']}" if facts.get("because") else ""
    if message in _STEPS and {"action", "target"} <= facts.keys():
        return f"{_STEPS[message]}{facts['action']} {facts['target']}{why}"
    told = ", ".join(f"{name}={fact}" for name, fact in facts.items())
    return f"{message}: {told}" if told else message


def routine(what: str) -> bool:
    """Whether a sentence tells a watcher nothing."""
    return what.partition(":")[0] in ROUTINE
