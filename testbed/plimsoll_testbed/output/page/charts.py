"""The plots of a page: a workload's Ready count, a node's pods, and the marks below them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Final
from xml.etree import ElementTree as ET

from plimsoll_testbed.measure.history import Level, NodeTrack
from plimsoll_testbed.output.page.elements import Child, add, el
from plimsoll_testbed.output.page.marks import SIGNS, Mark, gathered, gravest, stacked
from plimsoll_testbed.output.page.scales import (
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
TOLD: Final = 14
"""Lines of one mark; the rest stands in the list of what was done."""
EARLY: Final = 0.8
"""The share of the longest drill up to which there is room to say that one is over."""
NEAR: Final = 0.025
"""The share of a plot's width that a mark takes, where one stands alone."""
NEAR_ON_A_PHONE: Final = 0.1
"""The same on the narrowest screen, of 320 CSS pixels; the style has the rows from 40rem down."""


def workload_plot(  # noqa: PLR0913 - what is drawn, and on what
    levels: Sequence[Level], row: dict[str, Any], scale: Scale, *, end: float, most: int, who: str
) -> ET.Element:
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
    floor = [(level.seconds, level.floor) for level in drawn]
    lacking = [(level.seconds, level.ready, level.replicas) for level in drawn]
    beneath = [(level.seconds, level.ready, level.floor) for level in drawn]
    told = (
        f"Ready pods of {who} over {end:g} seconds: at first {ready[0][1] if ready else 0}, "
        f"lowest {row['min_ready']}, at the end {ready[-1][1] if ready else 0}; "
        f"{row['replicas']} replicas, floor {row['ready_floor']}"
    )
    shapes = [
        _path("ready-area", area(ready, end, scale, most)),
        _path("short", short_of(lacking, end, scale, most), hatch="hatch"),
        _path("beneath", short_of(beneath, end, scale, most), hatch="cross"),
        _path("floor", stairs(floor, end, scale, most)) if row["ready_floor"] else None,
        _path("replicas", stairs(replicas, end, scale, most)),
        _path("ready", stairs(ready, end, scale, most)),
    ]
    last = levels[-1] if levels else Level(0.0, 0, row["replicas"], row["ready_floor"])
    labels = [_count(last.replicas, most), _count(0, most)]
    if 0 < last.floor < last.replicas:
        labels.append(_count(last.floor, most, at=scale.percent(end)))
    return _plot(told, shapes, labels, scale, end)


def node_plot(
    track: NodeTrack, row: dict[str, Any] | None, scale: Scale, *, end: float, most: int
) -> ET.Element:
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
    shapes = [
        _box("starting", track.launched, track.joined or end, scale)
        if track.launched and (track.joined or end) > track.launched
        else None,
        _box("closed", cordoned, there, scale) if cordoned is not None else None,
        _box("away", gone, end, scale) if gone is not None else None,
        _path("pods-area", area(drawn, there, scale, most)),
        _path("pods", stairs(drawn, there, scale, most)),
    ]
    return _plot(told, shapes, [_count(most, most), _count(0, most)], scale, end)


def lane(marks: Iterable[Mark], scale: Scale, *, runs: int) -> ET.Element:
    """Return marks as buttons that say more on hover and on focus."""
    bunches = gathered(marks, scale.seconds * NEAR * (1 + 0.4 * (runs - 1)))
    lines = stacked([bunch[0].seconds for bunch in bunches], scale.seconds * NEAR_ON_A_PHONE)
    deep = max(lines, default=0) + 1
    return el(
        "div",
        {"class": "lane", "style": f"--rows:{deep}" if deep > 1 else None},
        *(_button(bunch, line, scale) for bunch, line in zip(bunches, lines, strict=True)),
    )


def axis(scale: Scale) -> ET.Element:
    """Return the moments below a column of plots."""
    return el(
        "div",
        {"class": "axis", "aria-hidden": "true"},
        *(el("span", {"style": f"left:{scale.percent(at):g}%"}, clock(at)) for at in scale.ticks()),
    )


def legend() -> ET.Element:
    """Return what lines, fillings and signs mean."""
    swatches = (
        ("ready", "Ready"),
        ("replicas", "replicas declared"),
        ("floor", "ready floor"),
        ("short", "short of replicas"),
        ("beneath", "below the floor"),
        ("pods", "pods on a node"),
        ("starting", "node starts"),
        ("closed", "node cordoned"),
        ("away", "node gone"),
    )
    return el(
        "ul",
        {"class": "legend", "aria-label": "Legend"},
        *(el("li", {}, _swatch(name), words) for name, words in swatches),
        *(
            el("li", {}, el("span", {"class": f"sign {_style(kind)}"}, sign), words)
            for kind, (sign, words) in SIGNS.items()
        ),
    )


def patterns() -> ET.Element:
    """Return the fillings that all plots share."""
    return el(
        "svg",
        {"class": "patterns", "width": 0, "height": 0, "aria-hidden": "true", "focusable": "false"},
        el(
            "defs",
            {},
            _pattern("hatch", "M0 8L8 0M-2 2L2 -2M6 10L10 6"),
            _pattern("slant", "M0 0L8 8M-2 6L2 10M6 -2L10 2"),
            _pattern("cross", "M0 8L8 0M0 0L8 8"),
            _pattern("dots", "M1 1H3M5 5H7"),
        ),
    )


def _pattern(name: str, path: str) -> ET.Element:
    size = {"id": name, "width": 8, "height": 8, "patternUnits": "userSpaceOnUse"}
    return el("pattern", size, el("path", {"d": path}))


def _plot(
    told: str,
    shapes: Iterable[Child],
    labels: Iterable[Child],
    scale: Scale,
    end: float,
) -> ET.Element:
    svg = el(
        "svg",
        {
            "viewBox": f"0 0 {WIDTH} {HEIGHT}",
            "preserveAspectRatio": "none",
            "role": "img",
            "aria-label": told,
            "focusable": "false",
        },
        _path("grid", "".join(f"M{scale.x(at):g} 0V{HEIGHT}" for at in scale.ticks())),
        _path("ground", f"M0 {HEIGHT}H{scale.x(end):g}"),
    )
    add(svg, *shapes)
    return el("div", {"class": "plot"}, svg, *labels, _over(end, scale))


def _path(name: str, line: str, *, hatch: str | None = None) -> ET.Element | None:
    if not line:
        return None
    fill = f"fill:url(#{hatch})" if hatch else None
    return el("path", {"class": name, "d": line, "style": fill})


def _box(name: str, since: float, until: float, scale: Scale) -> ET.Element | None:
    left, right = scale.x(since), scale.x(until)
    fill = {"away": "fill:url(#slant)", "starting": "fill:url(#dots)"}.get(name)
    return el(
        "path", {"class": name, "d": f"M{left:g} 0H{right:g}V{HEIGHT}H{left:g}Z", "style": fill}
    )


def _swatch(name: str) -> ET.Element:
    frame = {"class": "swatch", "viewBox": "0 0 28 12", "aria-hidden": "true", "focusable": "false"}
    if name in {"ready", "replicas", "floor", "pods"}:
        return el("svg", frame, _path(name, "M0 6H28"))
    hatch = {"short": "hatch", "beneath": "cross", "away": "slant", "starting": "dots"}.get(name)
    return el("svg", frame, _path(name, "M0 0H28V12H0Z", hatch=hatch))


def _count(count: int, most: int, at: float | None = None) -> ET.Element:
    """Return a count beside its line: to the left of the plot, or where the line ends."""
    side, left = ("left", "") if at is None else ("right", f";left:{at:g}%")
    style = f"top:{y(count, most):g}%{left}"
    return el("span", {"class": f"count {side}", "style": style, "aria-hidden": "true"}, str(count))


def _over(end: float, scale: Scale) -> ET.Element | None:
    """Return a word after the end of a drill that was over before the one beside it."""
    if end > scale.seconds * EARLY:
        return None
    at = {"class": "over", "style": f"left:{scale.percent(end):g}%", "aria-hidden": "true"}
    return el("span", at, f"over at {clock(end)}")


def _button(bunch: Sequence[Mark], row: int, scale: Scale) -> ET.Element:
    kind = gravest(bunch)
    style = f"--at:{scale.percent(bunch[0].seconds) / 100:.4g}" + (f";--row:{row}" if row else "")
    lines = list(dict.fromkeys((mark.seconds, mark.words) for mark in bunch))
    told = [
        el("span", {"class": "line"}, el("b", {}, f"{seconds:.1f} s"), f" {words}")
        for seconds, words in lines[:TOLD]
    ]
    if len(lines) > TOLD:
        told.append(el("span", {"class": "line"}, f"and {len(lines) - TOLD} more, listed below"))
    return el(
        "button",
        {"type": "button", "class": f"mark {_style(kind)}", "style": style},
        el("span", {"class": "sign", "aria-hidden": "true"}, SIGNS[kind][0]),
        el("span", {"class": "tip"}, *told),
    )


def _style(kind: str) -> str:
    return kind.replace(" ", "-")
