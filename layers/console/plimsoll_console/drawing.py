"""What the screens draw, as SVG: a stretched inner picture, and text beside it that keeps its size at every width.

No attribute `style` and no `viewBox` around text: the first is dead under the content security policy, and the second
shrinks letters on a phone.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Final

from markupsafe import Markup, escape

if TYPE_CHECKING:  # the first page does not wait for what it never needs
    from plimsoll.domain.frames import Frame, WorkloadFrame

_PLOT: Final = 150
"""Pixels."""
_TOP: Final = 26
_STRETCHED: Final = 1000
_INNER: Final = f'viewBox="0 0 {_STRETCHED} 100" preserveAspectRatio="none" aria-hidden="true"'
_MOST_BOXES: Final = 36
"""Replicas that are drawn one by one."""


def clock(seconds: float) -> str:
    """Return seconds as minutes and seconds."""
    whole = round(seconds)
    return f"{'-' if whole < 0 else ''}{abs(whole) // 60}:{abs(whole) % 60:02}"


def percent(part: float, of: float) -> str:
    """Return a share as a coordinate."""
    return f"{max(0.0, min(100.0, 100 * part / of)):.2f}%" if of else "0%"


def storm_chart(
    frame: Frame, seconds: float, predicted: Sequence[tuple[float, int]] = ()
) -> Markup:
    """Return the pods that must move over time: safe, under way, not begun.

    Args:
        frame: the storm up to now.
        seconds: how long after the first notice it is now.
        predicted: (seconds, safe pods) of a rehearsal.
    """
    most = max(1, frame.counts.of)
    end = max((node.deadline for node in frame.nodes if node.deadline), default=None)
    horizon = max((end or 0) + 6, seconds + 6, 30)
    parts = [
        _grid(horizon, end),
        f'<svg y="{_TOP}" width="100%" height="{_PLOT}" {_INNER}>',
        f'<path class="plot-wait" d="M0 0H{_x(seconds, horizon)}V100H0Z"/>',
        f'<path class="plot-move" d="{_stairs(((s, n) for s, _, n in frame.trace), seconds, horizon, most)}"/>',
        f'<path class="plot-safe" d="{_stairs(((s, n) for s, n, _ in frame.trace), seconds, horizon, most)}"/>',
    ]
    if predicted:
        d = "M0 100" + "".join(f"H{_x(s, horizon)}V{_y(n, most)}" for s, n in predicted)
        parts.append(f'<path class="plot-fore" d="{d}H{_STRETCHED}"/>')
    parts.append("</svg>")
    for at, words in _moments(frame):
        x = percent(at, horizon)
        parts.append(
            f'<line class="plot-mark" x1="{x}" x2="{x}" y1="{_TOP - 6}" y2="{_TOP + _PLOT}"/>'
            f'<text class="ink thin" x="{x}" dx="4" y="{_TOP - 10}">{escape(words)}</text>'
        )
    parts.append(f'<text class="end" x="100%" y="{_TOP - 10}">{frame.counts.of} pods</text>')
    low = _TOP + _PLOT
    parts.append(f'<line class="plot-base" x1="0" x2="100%" y1="{low}" y2="{low}"/>')
    if end is not None:
        x = percent(end, horizon)
        parts.append(
            f'<line class="plot-end" x1="{x}" x2="{x}" y1="{_TOP - 6}" y2="{low}"/>'
            f'<text class="bad end" x="{x}" dx="-6" y="{low + 17}">instances go, {clock(end)}</text>'
        )
    if end is None or seconds < end:
        x = percent(seconds, horizon)
        parts.append(f'<line class="plot-now" x1="{x}" x2="{x}" y1="{_TOP}" y2="{low}"/>')
    label = (
        f"Pods over time: {frame.counts.safe} of {frame.counts.of} are safe "
        f"{round(seconds)} seconds after the first notice."
    )
    return _svg("plot", low + 26, label, parts)


def _grid(horizon: float, end: float | None) -> str:
    step = 30 if horizon < 400 else 30 * round(horizon / 300)  # noqa: PLR2004 - at most a dozen lines
    found = []
    for second in range(0, int(horizon) + 1, step):
        x = percent(second, horizon)
        found.append(f'<line class="plot-grid" x1="{x}" x2="{x}" y1="{_TOP}" y2="{_TOP + _PLOT}"/>')
        if end is None or abs(second - end) > horizon / 6:
            words, at = ("notice", "") if second == 0 else (f"+{clock(second)}", "mid")
            odd = " thin" if second > horizon / 3 or (second // step) % 2 else ""
            found.append(f'<text class="{at}{odd}" x="{x}" y="{_TOP + _PLOT + 17}">{words}</text>')
    return "".join(found)


def _stairs(points: Iterable[tuple[float, int]], seconds: float, horizon: float, most: int) -> str:
    steps = "".join(f"H{_x(at, horizon)}V{_y(n, most)}" for at, n in points if at <= seconds)
    return f"M0 100{steps}H{_x(seconds, horizon)}V100Z"


def _x(second: float, horizon: float) -> str:
    return f"{_STRETCHED * max(0.0, min(1.0, second / horizon)):.1f}"


def _y(pods: int, most: int) -> str:
    return f"{100 - 100 * min(pods, most) / most:.1f}"


def _moments(frame: Frame) -> Iterable[tuple[float, str]]:
    """Yield when capacity was asked for first, and when pods began to leave."""
    for words, prefix in (("capacity asked", "Requested"), ("evictions", "Evicted")):
        first = next((line.seconds for line in frame.lines if line.words.startswith(prefix)), None)
        if first is not None:
            yield first, words


def node_bar(left: int, had: int) -> Markup:
    """Return how much of a node is empty."""
    had = max(1, had, left)
    return _svg(
        "plot bar",
        12,
        f"{left} of {had} pods are left",
        [
            '<rect class="plot-wait" width="100%" height="12" rx="3"/>',
            f'<rect class="plot-safe" width="{percent(had - left, had)}" height="12" rx="3"/>',
        ],
    )


def replica_boxes(frame: WorkloadFrame) -> Markup:
    """Return a box for each replica: Ready and stays, Ready on a node that goes, starting, without a node."""
    stays = max(0, frame.ready - frame.going)
    kinds = ["stays"] * stays + ["goes"] * frame.going
    kinds += ["starts"] * frame.starting + ["pending"] * frame.no_node
    floor = frame.floor if frame.serves else 0
    boxes = []
    for place, kind in enumerate([*kinds, ""]):
        if floor and place == min(floor, len(kinds), _MOST_BOXES):
            boxes.append('<i class="box-floor"></i>')
        if kind and place < _MOST_BOXES:
            boxes.append(f'<i class="box box-{kind}"></i>')
    more = len(kinds) - _MOST_BOXES
    tail = f'<span class="quiet small">and {more}</span>' if more > 0 else ""
    label = (
        f"{frame.ready} Ready, {frame.going} of them on nodes that go; {frame.starting} starting, "
        f"{frame.no_node} without a node; ready floor {floor}"
    )
    # The markup is ours: only figures stand in it.
    drawn = f'<span class="boxes" role="img" aria-label="{label}">{"".join(boxes)}{tail}</span>'
    return Markup(drawn)  # noqa: S704 - figures only


def load_bar(on_demand: int, spot: int, replicas: int, line: int, least: int) -> Markup:
    """Return the load line of one row: on-demand, spot, the line that is promised, and what is missing of it."""
    of = max(1, replicas)
    parts = [
        '<rect class="hull-out" y="6.5" width="100%" height="13" rx="3"/>',
        f'<rect class="hull-od" y="6.5" width="{percent(on_demand, of)}" height="13"/>',
        f'<rect class="hull-spot" x="{percent(on_demand, of)}" y="6.5" width="{percent(spot, of)}" height="13"/>',
    ]
    if least < line:
        parts.append(
            f'<rect class="hull-gap" x="{percent(least, of)}" y="6.5" width="{percent(line - least, of)}" height="13"/>'
        )
    if line:
        x = percent(line, of)
        kind = "hull-low" if least < line else "hull-line"
        parts.append(f'<line class="{kind}" x1="{x}" x2="{x}" y1="1" y2="25"/>')
    label = (
        f"{on_demand + spot} of {replicas} Ready, {on_demand} on on-demand and {spot} on spot; line {line}; "
        f"{least} stay if all spot goes"
    )
    return _svg("plot hull-mini", 26, label, parts)


def quota_bar(used: int, quota: int, most: int, label: str) -> Markup:
    """Return what a queue uses: of its own quota, borrowed beyond it, and what it could use at most."""
    of = max(1, used, quota, most)
    x = percent(quota, of)
    parts = [
        '<rect class="hull-out" y="4.5" width="100%" height="9" rx="3"/>',
        f'<rect class="hull-od" y="4.5" width="{percent(min(used, quota), of)}" height="9"/>',
        f'<rect class="hull-spot" x="{x}" y="4.5" width="{percent(max(0, used - quota), of)}" height="9"/>',
        f'<line class="hull-line" x1="{x}" x2="{x}" y1="0" y2="18"/>',
    ]
    return _svg("plot hull-mini", 18, label, parts)


def load_line(  # noqa: PLR0913, PLR0917 - the parts of the drawing
    name: str,
    on_demand: int,
    spot: int,
    replicas: int,
    line: int | None,
    marks: Sequence[tuple[str, int]],
) -> Markup:
    """Return the load line of a workload, as on a hull: what is Ready is the draught, each loss has its own tick.

    Args:
        name: of the workload.
        on_demand: Ready pods there.
        spot: Ready pods there.
        replicas: how many it declares.
        line: how many are promised to stand on on-demand; None: nobody promised.
        marks: the loss in words, and what stays.
    """
    of, top, height = max(1, replicas, on_demand + spot), 24, 250

    def y(value: float) -> float:
        return round(top + height - height * value / of, 1)

    unit = height / of
    gap = 3 if unit > 9 else 0.6 if unit > 3 else 0  # noqa: PLR2004 - pixels
    parts = []
    for place in range(min(of, height)):
        kind = "od" if place < on_demand else "spot" if place < on_demand + spot else "out"
        parts.append(
            f'<rect class="hull-{kind}" x="2%" y="{y(place + 1) + gap / 2:.1f}" width="30%" '
            f'height="{max(0.5, unit - gap):.1f}" rx="3"/>'
        )
    parts.append(f'<line class="mark-staff" x1="62%" x2="62%" y1="{y(of)}" y2="{y(0)}"/>')
    at: dict[int, list[str]] = {}
    for words, stays in marks:
        at.setdefault(stays, []).append(words)
    for stays, several in at.items():
        bad = " bad" if line is not None and stays < line else ""
        level = y(stays)
        parts += [
            f'<line class="mark-guide" x1="33%" x2="62%" y1="{level}" y2="{level}"/>',
            f'<line class="mark-tick{bad}" x1="62%" x2="66%" y1="{level}" y2="{level}"/>',
            f'<text class="big" x="67%" y="{level + 5}">{stays}</text>',
        ]
        for place, words in enumerate(several):
            offset = level + 5 + (place - (len(several) - 1) / 2) * 16
            lead = "or" if place else "if"
            parts.append(
                f'<text class="rare{bad}" x="67%" dx="24" y="{offset:.1f}">{lead} {escape(words)} goes</text>'
            )
    if line is not None:
        level = y(min(line, of))
        parts += [
            f'<circle class="mark-ring" cx="57%" cy="{level}" r="14"/>',
            f'<line class="mark-ring" x1="51%" x2="62%" y1="{level}" y2="{level}"/>',
            f'<text class="big end halo" x="50%" y="{level + 5}">line {line}</text>',
        ]
    if on_demand:
        parts.append(
            f'<text class="halo" x="34%" y="{y(on_demand / 2) + 4}">{on_demand} on-demand</text>'
        )
    if spot:
        parts.append(
            f'<text class="halo" x="34%" y="{y(on_demand + spot / 2) + 4}">{spot} on spot</text>'
        )
    parts.append(
        f'<text x="2%" y="{top + height + 20}">{on_demand + spot} of {replicas} Ready</text>'
    )
    said = "; ".join(f"if {words} goes, {stays} stay" for words, stays in marks)
    promised = "no line is promised" if line is None else f"the line is at {line}"
    label = f"Load line of {name}: {on_demand + spot} of {replicas} Ready; {promised}; {said}"
    return _svg("plot hull", top + height + 28, label, parts)


def _svg(kind: str, height: float, label: str, parts: Iterable[str]) -> Markup:
    # Each part holds figures and escaped words only.
    return Markup(  # noqa: S704
        f'<svg class="{kind}" width="100%" height="{height:g}" role="img" aria-label="{escape(label)}">'
        f"{''.join(parts)}</svg>"
    )
