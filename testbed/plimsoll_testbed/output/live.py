"""Shows a drill while it runs: drawn anew on a terminal, and as lines of a log anywhere else.

Both write to standard error. The rig calls them while it holds its world still, so they only take
a picture; a thread of `rich` draws it.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from types import TracebackType
from typing import Final, Protocol, Self, override

from rich.console import Console, ConsoleOptions, RenderResult
from rich.live import Live
from rich.spinner import Spinner
from rich.text import Text

from plimsoll_testbed.measure.listening import Listener, Progress
from plimsoll_testbed.measure.sentences import routine
from plimsoll_testbed.measure.snapshot import Snapshot
from plimsoll_testbed.output.screen import Line, Other, Screen, workload_name

LOOK: Final = 0.2
"""Seconds between two pictures on a terminal."""
STATUS: Final = 10.0
"""Seconds of the drill between two lines that say how things stand, where there is no terminal."""
_RECENT: Final = 40
"""What was said within so many lines is not said again: events come more than once."""


class View(Listener, Protocol):
    """A listener that shows what it hears, from entering it to leaving it."""

    def step(self, what: str) -> None:
        """Say what is being set up from now on."""

    def __enter__(self) -> Self:
        """Start to show."""

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Stop; what was shown last stays."""


def view(console: Console, title: str, *, others: Sequence[Other] = (), pace: float = 0) -> View:
    """Return what suits a console: a drawing on a terminal, and lines of text anywhere else.

    Args:
        console: where to show it.
        title: what is played.
        others: how other responders fared.
        pace: real seconds that each call of `show` takes on a terminal; for a rig that is too fast
            to watch.
    """
    if console.is_terminal and not console.is_dumb_terminal:
        return LiveView(console, title, others=others, pace=pace)
    return PlainView(console)


class LiveView(AbstractContextManager["LiveView"]):
    """Draws on a terminal."""

    def __init__(
        self, console: Console, title: str, *, others: Sequence[Other] = (), pace: float = 0
    ) -> None:
        self._console = console
        self._title = title
        self._others = others
        self._pace = pace
        self._lines: deque[Line] = deque(maxlen=_RECENT)
        self._snapshot: Snapshot | None = None
        self._taken = 0.0
        self._began = time.monotonic()
        self._doing = "setting up"
        self._spinner = Spinner("dots")
        self._live = Live(self, console=console, refresh_per_second=4, vertical_overflow="crop")

    @override
    def __enter__(self) -> Self:
        self._live.__enter__()
        return self

    @override
    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._live.transient = self._snapshot is None
        self._live.__exit__(kind, error, trace)

    def step(self, what: str) -> None:
        """Show what is being set up."""
        self._doing = what

    def progress(self, progress: Progress) -> None:
        """Pass it over: pictures know the time."""

    def say(self, seconds: float, what: str) -> None:
        """Take a line into the log; while things are set up, print it for good."""
        if self._snapshot is None:
            self._console.print(Text(f"{seconds:6.1f} s  {what}"))
        elif not routine(what) and all(line.what != what for line in self._lines):
            self._lines.append(Line(seconds=seconds, what=what))

    def show(self, snapshot: Callable[[], Snapshot]) -> None:
        """Take a picture if the last one is old enough."""
        if self._pace:
            time.sleep(self._pace)
        if self._pace or self._snapshot is None or time.monotonic() - self._taken >= LOOK:
            self._snapshot = snapshot()
            self._taken = time.monotonic()

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        """Draw the newest picture, or that there is none yet."""
        if self._snapshot is None:
            self._spinner.update(text=f"{self._doing}, {time.monotonic() - self._began:.0f} s")
            yield self._spinner
            return
        yield Screen(
            title=self._title,
            snapshot=self._snapshot,
            lines=tuple(self._lines),
            others=self._others,
        )


class PlainView(AbstractContextManager["PlainView"]):
    """Prints lines."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._seconds = 0.0
        self._told = -STATUS
        self._recent: deque[str] = deque(maxlen=_RECENT)

    @override
    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Nothing is left to do."""

    def step(self, what: str) -> None:
        """Say what is being set up."""
        self._print(f"{'':10}{what}")

    def progress(self, progress: Progress) -> None:
        """Keep the time of the drill."""
        self._seconds = progress.seconds

    def say(self, seconds: float, what: str) -> None:
        """Print it, unless it says nothing new."""
        if not routine(what) and what not in self._recent:
            self._recent.append(what)
            self._print(f"{seconds:8.1f}  {what}")

    def show(self, snapshot: Callable[[], Snapshot]) -> None:
        """Say from time to time how things stand."""
        if self._seconds - self._told >= STATUS:
            self._told = self._seconds
            self._print(status_line(snapshot()))

    def _print(self, text: str) -> None:
        self._console.print(Text(text), soft_wrap=True)


def status_line(snapshot: Snapshot) -> str:
    """Return in one line how things stand."""
    ready = ", ".join(
        f"{workload_name(w, snapshot)} {w.ready}/{w.replicas}" for w in snapshot.workloads
    )
    return f"{snapshot.seconds:8.1f}  {snapshot.phase} ({ready})"
