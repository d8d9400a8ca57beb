"""The progress of a drain, printed to a terminal."""

from __future__ import annotations

from dataclasses import dataclass, field

from plimsoll.domain.reports import Metric
from plimsoll.services.ports import Clock
from plimsoll_cli.terminal import say


@dataclass(slots=True, kw_only=True)
class Progress:
    """The actions and lines of a drain. Implements `plimsoll.services.node_drain.Progress`."""

    clock: Clock
    quiet: bool
    """Print nothing: the result is data, at the end."""
    actions: list[dict[str, object]] = field(default_factory=list)
    said: set[str] = field(default_factory=set)

    def say(self, line: str) -> None:
        """Print a line with the time."""
        if not self.quiet:
            say(f"{self.clock.now():%H:%M:%S}  {line}")

    def once(self, line: str) -> None:
        """Print a line unless it was printed before."""
        if line not in self.said:
            self.said.add(line)
            self.say(line)

    def log(self, message: str, **facts: object) -> None:
        """Print an action that was carried out, with its reason."""
        self.actions.append({key: facts[key] for key in ("action", "target", "because")})
        gone = " (already gone)" if message == "was gone already" else ""
        self.say(f"{facts['action']} {facts['target']}{gone}: {facts['because']}")

    def warn(self, message: str, **facts: object) -> None:
        """Print why an action failed; the next round decides again."""
        self.once(f"{message}: {facts['action']} {facts['target']}: {facts['because']}")

    def count(self, metric: Metric, value: float = 1, *, cluster: str | None = None) -> None:
        """Count nothing."""
