"""Where moments and counts are drawn, and how long series are thinned out.

A plot is drawn in units of its own, 1000 wide and 100 high, and stretched to the space there is.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Final

WIDTH: Final = 1000
HEIGHT: Final = 100
_HEADROOM: Final = 0.12
"""Above the highest count, so that its line is not cut."""
_ROUND: Final = (5, 10, 20, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 14400)
_TICKS: Final = 6
_PER_BUCKET: Final = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class Scale:
    """From seconds to places; the same for all that stands side by side."""

    seconds: float
    """Where it ends."""

    def x(self, seconds: float) -> float:
        """Return where a moment is in a plot."""
        return round(self._share(seconds) * WIDTH, 1)

    def percent(self, seconds: float) -> float:
        """Return the same in percent of the width."""
        return round(self._share(seconds) * 100, 2)

    def ticks(self) -> Sequence[float]:
        """Return the moments that get a line, a round number of seconds apart."""
        apart = next((r for r in _ROUND if self.seconds / r <= _TICKS), self.seconds / _TICKS)
        return [n * apart for n in range(int(self.seconds / apart) + 1)]

    def _share(self, seconds: float) -> float:
        return min(1.0, max(0.0, seconds / self.seconds)) if self.seconds else 0.0


def y(count: float, most: int) -> float:
    """Return how far from the top a count is drawn."""
    return round(HEIGHT - HEIGHT * (1 - _HEADROOM) * count / max(1, most), 1)


def clock(seconds: float) -> str:
    """Return a moment as it stands below a plot."""
    whole = round(seconds)
    return f"{whole} s" if whole < 60 else f"{whole // 60}:{whole % 60:02}"  # noqa: PLR2004 - a minute


type Step = tuple[float, int]
"""A count, and the second from which it holds."""


def thinned[S: tuple[Any, ...]](steps: Sequence[S], most: int) -> Sequence[S]:
    """Return at most so many steps of second and count, in order.

    A dip is never lost: of each stretch the lowest is kept.
    """
    if len(steps) <= most:
        return steps
    buckets = max(1, most // _PER_BUCKET)
    size = -(-len(steps) // buckets)
    kept: list[S] = []
    for start in range(0, len(steps), size):
        stretch = steps[start : start + size]
        lowest = min(range(len(stretch)), key=lambda i: stretch[i][1])
        kept += [stretch[i] for i in sorted({0, lowest, len(stretch) - 1})]
    return kept


def stairs(steps: Sequence[Step], end: float, scale: Scale, most: int) -> str:
    """Return the path of a step line that ends at a moment."""
    if not steps:
        return ""
    path = f"M{scale.x(steps[0][0]):g} {y(steps[0][1], most):g}"
    for seconds, count in steps[1:]:
        path += f"H{scale.x(seconds):g}V{y(count, most):g}"
    return path + f"H{scale.x(end):g}"


def area(steps: Sequence[Step], end: float, scale: Scale, most: int) -> str:
    """Return the path of what is below a step line."""
    if not steps:
        return ""
    return f"{stairs(steps, end, scale, most)}V{HEIGHT}H{scale.x(steps[0][0]):g}Z"


def short_of(levels: Sequence[tuple[float, int, int]], end: float, scale: Scale, most: int) -> str:
    """Return the path of what is between a count and what it should be, where it is below.

    Args:
        levels: second, count, and what it should be.
        end: until when the last level holds.
        scale: of the plot.
        most: the highest count of the plot.
    """
    return "".join(_boxes(levels, end, scale, most))


def _boxes(
    levels: Sequence[tuple[float, int, int]], end: float, scale: Scale, most: int
) -> Iterator[str]:
    for (since, count, aim), (until, _, _) in pairwise([*levels, (end, 0, 0)]):
        if count < aim:
            left, right = scale.x(since), scale.x(until)
            yield f"M{left:g} {y(aim, most):g}H{right:g}V{y(count, most):g}H{left:g}Z"
