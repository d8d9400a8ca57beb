"""What an agent says, in words for people who watch a demo: its own lines of JSON are for machines."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import override

from plimsoll.services.ports import Clock
from plimsoll_agent.output import Output


class Said(Output):
    """Hands each line that the agent says to somebody."""

    def __init__(self, clock: Clock, say: Callable[[str], None]) -> None:
        super().__init__(clock)
        self._tell = say

    @override
    def _say(self, level: str, message: str, facts: Mapping[str, object]) -> None:
        self._tell(f"  agent: {_words(message, facts)}")


def _words(message: str, facts: Mapping[str, object]) -> str:
    named = ("node", "step", "action", "kind", "target", "outcome")
    said = [str(facts[key]) for key in named if key in facts]
    because = f": {facts['because']}" if facts.get("because") else ""
    return (" ".join(said) or message) + because
