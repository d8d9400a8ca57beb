"""The plots of a page: a workload's Ready count, a node's pods, and the marks below them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

from plimsoll_simulation.measure.history import Level, NodeTrack
from plimsoll_simulation.output.page.marks import Kind, Mark, gathered, gravest, stacked
from plimsoll_simulation.output.page.scales import (
    HEIGHT,
    WIDTH,
    Scale,
    area,
    clock,
    short_of,
    stairs,
    thinned,
    y,
)

STEPS: Final = 400
"""Of one workload; more are thinned out, since a plot has hardly more points."""
NODE_STEPS: Final = 90
EARLY: Final = 0.8
"""The share of the longest drill up to which there is space to say that one is over."""
NEAR: Final = 0.025
"""The share of a plot's width that a mark takes, where one stands alone."""
NEAR_ON_A_PHONE: Final = 0.1
"""The same on the narrowest screen, of 320 CSS pixels; the style has the rows from 40rem down."""


class Shape(NamedTuple):
    """A path, and the style that draws it; an empty path is not drawn."""

    style: str
    line: str


class Label(NamedTuple):
    """A count beside its line: to the left of the plot, or where the line ends."""

    number: int
    top: float
    left: float | None = None


class Moment(NamedTuple):
    """A moment below a plot, in words and in percent of its width."""

    percent: float
    words: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Plot:
    """One drawing."""

    told: str
    """For those who listen."""
    shapes: Sequence[Shape]
    labels: Sequence[Label]
    over: Moment | None
    """When the drill was over, if the one beside it went on."""
    width: int = WIDTH
    height: int = HEIGHT


@dataclass(frozen=True, slots=True, kw_only=True)
class Button:
    """Marks that are drawn as one."""

    kind: Kind
    at: float
    """Its place, as a share of the plot's width."""
    row: int
    lines: Sequence[tuple[float, str]]
    """Seconds and words."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Lane:
    """The marks below a plot."""

    rows: int
    buttons: Sequence[Button]


def workload_plot(  # noqa: PLR0913 - what is drawn, and on what
    levels: Sequence[Level], row: dict[str, Any], scale: Scale, *, end: float, most: int, who: str
) -> Plot:
    """Return the plot of a workload: Ready against replicas and floor.

    Args:
        levels: how it stood.
        row: of the report.
        scale: of the time.
        end: when the drill was over.
        most: the highest count of all plots beside it.
        who: in words, whose it is.
    """
    drawn = thinned(levels, STEPS)
    ready = [(level.seconds, level.ready) for level in drawn]
    replicas = [(level.seconds, level.replicas) for level in drawn]
    floor = [(level.seconds, level.floor) for level in drawn if row["ready_floor"]]
    lacking = [(level.seconds, level.ready, level.replicas) for level in drawn]
    beneath = [(level.seconds, level.ready, level.floor) for level in drawn]
    told = (
        f"Ready pods of {who} over {end:g} seconds: at first {ready[0][1] if ready else 0}, "
        f"lowest {row['min_ready']}, at the end {ready[-1][1] if ready else 0}; "
        f"{row['replicas']} replicas, floor {row['ready_floor']}"
    )
    shapes = [
        Shape("ready-area", area(ready, end, scale, most)),
        Shape("short", short_of(lacking, end, scale, most)),
        Shape("beneath", short_of(beneath, end, scale, most)),
        Shape("floor", stairs(floor, end, scale, most)),
        Shape("replicas", stairs(replicas, end, scale, most)),
        Shape("ready", stairs(ready, end, scale, most)),
    ]
    last = levels[-1] if levels else Level(0.0, 0, row["replicas"], row["ready_floor"])
    labels = [Label(last.replicas, y(last.replicas, most)), Label(0, y(0, most))]
    if 0 < last.floor < last.replicas:
        labels.append(Label(last.floor, y(last.floor, most), scale.percent(end)))
    return _plot(told, shapes, labels, scale, end)


def node_plot(
    track: NodeTrack, row: dict[str, Any] | None, scale: Scale, *, end: float, most: int
) -> Plot:
    """Return the plot of a node: its pods over time, and how long it was closed and there."""
    gone = None if row is None else row["gone"]
    cordoned = None if row is None else row["cordoned"]
    there = end if gone is None else gone
    loads = [load for load in track.loads if load.seconds <= there]
    drawn = thinned(loads, NODE_STEPS)
    told = f"Pods on node {track.name}: " + (
        ", ".join(f"{load.pods} from {load.seconds:g} s" for load in thinned(loads, 12))
        or "none ever"
    )
    joined = track.joined or end
    shapes = [
        Shape("pods-area", area(drawn, there, scale, most)),
        Shape("pods", stairs(drawn, there, scale, most)),
    ]
    if gone is not None:
        shapes.insert(0, _box("away", gone, end, scale))
    if cordoned is not None:
        shapes.insert(0, _box("closed", cordoned, there, scale))
    if track.launched and joined > track.launched:
        shapes.insert(0, _box("starting", track.launched, joined, scale))
    return _plot(told, shapes, [Label(most, y(most, most)), Label(0, y(0, most))], scale, end)


def lane(marks: Iterable[Mark], scale: Scale, *, runs: int) -> Lane:
    """Return marks as they are drawn below a plot with so many plots beside it."""
    bunches = gathered(marks, scale.seconds * NEAR * (1 + 0.4 * (runs - 1)))
    rows = stacked([bunch[0].seconds for bunch in bunches], scale.seconds * NEAR_ON_A_PHONE)
    buttons = [
        Button(
            kind=gravest(bunch),
            at=scale.percent(bunch[0].seconds) / 100,
            row=row,
            lines=list(dict.fromkeys((mark.seconds, mark.words) for mark in bunch)),
        )
        for bunch, row in zip(bunches, rows, strict=True)
    ]
    return Lane(rows=max(rows, default=0) + 1, buttons=buttons)


def moments(scale: Scale) -> Sequence[Moment]:
    """Return the moments below a plot."""
    return [Moment(scale.percent(at), clock(at)) for at in scale.ticks()]


def _plot(
    told: str, shapes: Sequence[Shape], labels: Sequence[Label], scale: Scale, end: float
) -> Plot:
    grid = "".join(f"M{scale.x(at):g} 0V{HEIGHT}" for at in scale.ticks())
    ground = f"M0 {HEIGHT}H{scale.x(end):g}"
    over = end <= scale.seconds * EARLY
    return Plot(
        told=told,
        shapes=[Shape("grid", grid), Shape("ground", ground), *shapes],
        labels=labels,
        over=Moment(scale.percent(end), clock(end)) if over else None,
    )


def _box(style: str, since: float, until: float, scale: Scale) -> Shape:
    left, right = scale.x(since), scale.x(until)
    return Shape(style, f"M{left:g} 0H{right:g}V{HEIGHT}H{left:g}Z")
