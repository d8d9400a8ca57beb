"""The live view: what stands on the screen in each state, and what is printed without a terminal."""

from __future__ import annotations

import io
from collections.abc import Callable
from dataclasses import replace

import pytest
from rich.console import Console

from plimsoll_simulation.measure.lines import Line
from plimsoll_simulation.measure.listening import Progress
from plimsoll_simulation.measure.report import Report
from plimsoll_simulation.measure.snapshot import (
    NodeSnapshot,
    PodsSnapshot,
    Snapshot,
    WorkloadSnapshot,
)
from plimsoll_simulation.output.live import LiveView
from plimsoll_simulation.output.screen import Screen

NODE = NodeSnapshot(
    cluster="harbor", name="spot-1", group="spot", zone="us-east-1a", capacity="spot",
    state="standing", notice=None, seconds_left=None, seconds_given=None, cordoned=False,
    pods=(PodsSnapshot(workload="web", ready=2, starting=1, stopping=1),), killed=0,
)  # fmt: skip
INTERRUPTED = replace(NODE, notice="spot-interruption", seconds_left=97.0, seconds_given=120.0)
WEB = WorkloadSnapshot(
    cluster="harbor", namespace="shop", kind="Deployment", name="web", ready=6, replicas=6, floor=5,
    lowest=6, killed=0, lost=0.0, at_zero=0.0,
)  # fmt: skip
SNAPSHOT = Snapshot(
    seconds=43.2, phase="1 node is interrupted", nodes=(NODE,), workloads=(WEB,), waiting=0
)


def drawn(
    snapshot: Snapshot,
    *,
    width: int = 80,
    height: int = 24,
    lines: tuple[Line, ...] = (),
    others: tuple[Report, ...] = (),
) -> list[str]:
    console = Console(
        record=True, width=width, height=height, file=io.StringIO(), force_terminal=True
    )
    console.print(Screen(title="storm · simulated", snapshot=snapshot, lines=lines, others=others))
    return [line.rstrip() for line in console.export_text().splitlines()]


def row(name: str, *nodes: NodeSnapshot, width: int = 80) -> str:
    text = drawn(replace(SNAPSHOT, nodes=nodes), width=width)
    return next(line for line in text if line.startswith(name))


@pytest.mark.parametrize(
    ("node", "words"),
    [
        (NODE, "spot-1 1a ██▒░"),
        (INTERRUPTED, "━━━━━╌  97 s notice"),
        (replace(INTERRUPTED, cordoned=True), "━━━━━╌  97 s cordoned"),
        (replace(INTERRUPTED, cordoned=True, pods=()), "━━━━━╌  97 s empty"),
        (replace(INTERRUPTED, cordoned=True, seconds_left=20.0), "━╌╌╌╌╌  20 s cordoned"),
        (replace(NODE, state="gone", notice="spot-interruption", pods=()), "gone"),
        (replace(NODE, state="gone", pods=(), killed=3), "gone, 3 pods killed"),
        (
            replace(NODE, state="starting", pods=(), seconds_left=30.0, seconds_given=60.0),
            "━━━╌╌╌  30 s starts",
        ),
    ],
)
def test_each_state_of_a_node_is_told_without_colour(node: NodeSnapshot, words: str):
    assert words in row("spot-1", node)


@pytest.mark.parametrize(("width", "height"), [(80, 24), (60, 20), (150, 42), (60, 14)])
def test_a_large_fleet_fits_the_terminal_and_the_most_telling_nodes_stay(width: int, height: int):
    nodes = (
        *(replace(NODE, name=f"quiet-{i}") for i in range(60)),
        *(replace(NODE, name=f"gone-{i}", state="gone", pods=()) for i in range(20)),
        replace(INTERRUPTED, name="interrupted-1"),
    )
    lines = tuple(Line(seconds=1.0, what=f"line {i}") for i in range(50))
    text = drawn(replace(SNAPSHOT, nodes=nodes), width=width, height=height, lines=lines)
    assert len(text) <= height - 1
    assert max(map(len, text)) <= width
    assert any(line.startswith("inter") for line in text)
    assert any(line.startswith("and 20 gone, ") for line in text)


def test_plain_ascii_is_enough():
    console = Console(width=80, height=24, file=io.TextIOWrapper(io.BytesIO(), "ascii"))
    with console.capture() as captured:
        console.print(Screen(title="storm", snapshot=replace(SNAPSHOT, nodes=(INTERRUPTED,))))
    text = captured.get()
    assert text.isascii()
    assert "##+-     =====-  97 s notice" in text


# The listeners.


@pytest.fixture(autouse=True)
def a_terminal_that_can_draw(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", "xterm")


def taken(*snapshots: Snapshot) -> tuple[Callable[[], Snapshot], list[Snapshot]]:
    """Return what takes each snapshot in turn, and those that were not taken."""
    left = list(snapshots)
    return lambda: left.pop(0), left


def test_an_action_is_drawn_at_once_and_its_reason_is_added_to_its_line_later():
    take, _ = taken(SNAPSHOT)
    paper = Console(width=80, height=24, file=io.StringIO(), record=True)
    with LiveView(Console(file=io.StringIO(), force_terminal=True), "storm") as shown:
        shown.show(take)
        shown.say(31.0, "evict Pod shop/web-1")
        paper.print(shown)
        assert "31.0  evict Pod shop/web-1\n" in paper.export_text()
        shown.say(31.2, "evict Pod shop/web-1: its place is ready")
        paper.print(shown)
    text = paper.export_text()
    assert text.count("evict Pod") == 1
    assert "31.0  evict Pod shop/web-1: its place is ready" in text


def test_without_a_terminal_lines_come_once_and_how_things_stand_every_ten_seconds():
    out = io.StringIO()
    console = Console(file=out, width=80)
    take, left = taken(*(replace(SNAPSHOT, seconds=float(i)) for i in range(25)))
    with LiveView(console, "storm") as shown:
        shown.step("setting up")
        for second in range(25):
            shown.progress(Progress(seconds=float(second), of_seconds=60.0))
            shown.show(take)
            shown.say(float(second), "cordoned n1")
    assert len(left) == 22
    assert out.getvalue().splitlines() == [
        "          setting up",
        "     0.0  1 node is interrupted (web 6/6)",
        "     0.0  cordoned n1",
        "     1.0  1 node is interrupted (web 6/6)",
        "     2.0  1 node is interrupted (web 6/6)",
    ]
