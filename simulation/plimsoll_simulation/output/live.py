"""The live view of a drill: drawn anew on a terminal, and as lines of a log anywhere else.

Both go to standard error. A rig calls the view while it holds its clusters still, so the view only
takes a snapshot; a thread of `rich` draws it.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from typing import Final, Literal, Self, override

from rich.console import Console, ConsoleOptions, RenderResult
from rich.live import Live
from rich.spinner import Spinner
from rich.text import Text

from plimsoll_simulation.measure.lines import Line, Log
from plimsoll_simulation.measure.listening import Progress
from plimsoll_simulation.measure.report import Report
from plimsoll_simulation.measure.sentences import routine
from plimsoll_simulation.measure.snapshot import Snapshot
from plimsoll_simulation.output.screen import Screen, workload_name

POLL_SECONDS: Final = 0.2
"""Seconds between two snapshots on a terminal."""
STATUS: Final = 10.0
"""Seconds of the drill between two status lines, where there is no terminal."""
_RECENT: Final = 40
"""What is among so many newest lines is not said again: events come more than once."""


class LiveView(AbstractContextManager["LiveView"]):
    """A listener that shows what it is told, from entering it to leaving it.

    Args:
        console: where to show it.
        title: what is played.
        others: how other responders fared.
        pace: real seconds that each call of `show` takes on a terminal; for a rig that is too fast
            to watch.
        kept: whether what was shown last stays on a terminal.
        lines: what is printed in lines: nothing, what a watcher wants to know, or all, which on a
            terminal scrolls above the drawing.
    """

    def __init__(  # noqa: PLR0913 - what a command may choose
        self,
        console: Console,
        title: str,
        *,
        others: Sequence[Report] = (),
        pace: float = 0,
        kept: bool = True,
        lines: Literal["none", "news", "all"] = "news",
    ) -> None:
        self._console = console
        self._title = title
        self._others = others
        self._pace = pace
        self._kept = kept
        self._lines = lines
        self._log = Log()
        self._snapshot: Snapshot | None = None
        self._progress = Progress(seconds=0.0, of_seconds=0.0)
        self._taken = self._told = float("-inf")
        self._began = time.monotonic()
        self._doing = "setting up"
        self._spinner = Spinner("dots")
        self._live: Live | None = None
        if console.is_terminal and not console.is_dumb_terminal:
            self._live = Live(self, console=console, refresh_per_second=4, vertical_overflow="crop")

    @override
    def __enter__(self) -> Self:
        if self._live is not None:
            self._live.start(refresh=True)
        return self

    @override
    def __exit__(self, *_: object) -> None:
        if self._live is not None:
            self._live.transient = self._snapshot is None or not self._kept
            self._live.stop()

    def step(self, what: str) -> None:
        """Say what is being set up from now on."""
        self._doing = what
        if self._live is None and self._lines == "news":
            self._print(f"{'':10}{what}")

    def progress(self, progress: Progress) -> None:
        """Keep the time of the drill."""
        self._progress = progress

    def say(self, seconds: float, what: str) -> None:
        """Take a line into the log. While things are set up, a terminal gets it for good."""
        if self._lines == "all":
            self._print(f"{seconds:9.3f}  {what}")
        elif self._live is not None and self._snapshot is None:
            if self._lines == "news":
                self._print(f"{seconds:6.1f} s  {what}")
            return
        if routine(what) or any(line.what == what for line in self._log.lines[-_RECENT:]):
            return
        self._log.take(Line(seconds, what))
        if self._live is None and self._lines == "news":
            self._print(f"{seconds:8.1f}  {what}")

    def show(self, snapshot: Callable[[], Snapshot]) -> None:
        """Take a snapshot if the last one is old enough."""
        if self._live is None:
            seconds = self._progress.seconds
            if self._lines == "news" and seconds - self._told >= STATUS:
                self._told = seconds
                self._print(_status(snapshot()))
            return
        time.sleep(self._pace)
        if self._pace or self._snapshot is None or time.monotonic() - self._taken >= POLL_SECONDS:
            self._snapshot = snapshot()
            self._taken = time.monotonic()

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        """Draw the newest snapshot, or that there is none yet."""
        if self._snapshot is None:
            self._spinner.update(text=f"{self._doing}, {time.monotonic() - self._began:.0f} s")
            yield self._spinner
            return
        yield Screen(
            title=self._title,
            snapshot=self._snapshot,
            of_seconds=self._progress.of_seconds,
            lines=tuple(self._log.lines[-_RECENT:]),
            others=self._others,
        )

    def _print(self, text: str) -> None:
        self._console.print(Text(text), soft_wrap=True)


def _status(snapshot: Snapshot) -> str:
    ready = ", ".join(
        f"{workload_name(w, snapshot)} {w.ready}/{w.replicas}" for w in snapshot.workloads
    )
    return f"{snapshot.seconds:8.1f}  {snapshot.phase} ({ready})"
