"""The page about a drill in a real browser, used as its readers use it.

Where there is no Chromium, `make browser` says how to get it.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from click.testing import CliRunner
from playwright.sync_api import Browser, Locator, Page

from plimsoll_cli import main
from tests.support.browsers import (
    AA_TEXT,
    HEIGHT,
    NARROW,
    NARROWEST,
    WIDE,
    Scheme,
    launched,
    looked,
    opened,
    text_contrasts,
)
from tests.support.properties import IN_TEST_LONG

ROOT = Path(__file__).parents[2]
EXAMPLE = ROOT / "examples" / "all-spot-at-once.yaml"
LONG = ROOT / "examples" / "slow-and-throttled.yaml"
RESPONDERS = ("plimsoll", "drain", "none")
pytestmark = pytest.mark.skipif(looked.returncode != 0, reason=looked.stderr.strip())


@dataclass(frozen=True)
class Drill:
    html: Path
    reports: Sequence[dict[str, Any]]


def played(example: Path, folder: Path, *options: str) -> Drill:
    html, reports = folder / f"{example.stem}.html", folder / f"{example.stem}.json"
    command = ["drill", str(example), *options, "--html", str(html), "--json", str(reports)]
    assert CliRunner().invoke(main, command).exit_code == 0
    read = json.loads(reports.read_text())
    return Drill(html, read if isinstance(read, list) else [read])


@pytest.fixture(scope="module")
def drill(tmp_path_factory: pytest.TempPathFactory) -> Drill:
    return played(EXAMPLE, tmp_path_factory.mktemp("compared"), "--compare")


@pytest.fixture(scope="module")
def long_drill(tmp_path_factory: pytest.TempPathFactory) -> Drill:
    return played(LONG, tmp_path_factory.mktemp("alone"))


@pytest.fixture(scope="module")
def browser(drill: Drill, long_drill: Drill) -> Iterator[Browser]:
    """A browser. The drills come first, because Playwright leaves an asyncio loop running."""
    with launched() as chromium:
        yield chromium


class Box(NamedTuple):
    left: float
    top: float
    width: float
    height: float


def box(found: Locator) -> Box:
    """Return where the only one found is, in pixels."""
    measured = found.bounding_box()
    assert measured is not None, found
    return Box(measured["x"], measured["y"], measured["width"], measured["height"])


def workload_plots(page: Page, name: str) -> list[Locator]:
    """Return one plot for each responder, in their order."""
    # By its attribute: by role, the browser names all of a large page again for each of them.
    labels = (f'[aria-label*="/{name} with {who} "]' for who in RESPONDERS)
    return [
        page.locator(f'svg[role="img"][aria-label^="Ready pods of "]{label}') for label in labels
    ]


def assert_side_by_side(boxes: Sequence[Box]) -> None:
    assert all(box.width > 300 and box.height > 40 for box in boxes)
    assert len({(box.top, round(box.width), box.height) for box in boxes}) == 1
    assert all(right.left > left.left + left.width for left, right in pairwise(boxes))


# What is drawn.


def test_every_workload_has_a_timeline_with_each_responder_side_by_side(
    browser: Browser, drill: Drill
):
    names = [row["name"] for row in drill.reports[0]["workloads"]]
    assert len(names) == 6
    with opened(browser, drill.html) as page:
        for name in names:
            boxes = [box(plot) for plot in workload_plots(page, name)]
            assert_side_by_side(boxes)


def test_on_a_narrow_screen_responders_stand_below_each_other_by_name(
    browser: Browser, drill: Drill
):
    with opened(browser, drill.html, width=NARROW) as page:
        boxes = [box(plot) for plot in workload_plots(page, "cart")]
        assert all(low.top > high.top + high.height for high, low in pairwise(boxes))
        captions = page.locator("#workloads figcaption .who")
        assert captions.count() >= len(RESPONDERS)
        assert all(box(caption).width > 20 for caption in captions.all())


def test_a_line_touches_the_ground_where_a_workload_had_nothing_ready(
    browser: Browser, drill: Drill
):
    lowest = {
        (row["name"], report["responder"]): row["min_ready"]
        for report in drill.reports
        for row in report["workloads"]
    }
    assert 0 in lowest.values()
    with opened(browser, drill.html) as page:
        touched = {
            (name, who): page_y(plot.locator(".ready")) >= page_y(plot.locator(".ground")) - 1
            for name in {name for name, _ in lowest}
            for who, plot in zip(RESPONDERS, workload_plots(page, name), strict=True)
        }
    assert touched == {key: value == 0 for key, value in lowest.items()}


def page_y(line: Locator) -> float:
    """Return where the lowest point of a line is, in pixels."""
    bottom: float = line.evaluate("(e) => e.getBoundingClientRect().bottom")
    return bottom


# Reasons, with the pointer and with the keyboard.


def test_the_pointer_opens_a_reason_and_may_rest_on_its_words(browser: Browser, drill: Drill):
    with opened(browser, drill.html) as page:
        reason = re.compile("release Pod shop.api.*; their replacements come first")
        mark = page.locator("#workloads").get_by_role("button", name=reason).first
        tip = mark.locator(".tip")
        assert box(tip).width <= 1
        mark.hover()
        assert reason.search(tip.inner_text())
        left, top, width, height = box(tip)
        assert width > 100
        page.mouse.move(box(mark).left + box(mark).width / 2, top + 2, steps=10)
        page.mouse.move(left + width / 2, top + height / 2, steps=10)
        assert box(tip).width == width
        page.keyboard.press("Escape")
        assert box(tip).width <= 1
        page.mouse.move(1, 1)
        mark.hover()
        assert box(tip).width == width


FOCUSED = """() => {
  const e = document.activeElement;
  if (e === document.body) return null;
  const outlined = [e, ...e.querySelectorAll(".sign")].map((o) => getComputedStyle(o))
    .find((s) => s.outlineStyle !== "none" && parseFloat(s.outlineWidth) >= 2);
  const {left, top, right, bottom} = e.getBoundingClientRect();
  // Of an element that is larger than the window, the middle of what can be seen of it.
  const x = (Math.max(left, 0) + Math.min(right, innerWidth)) / 2;
  const y = (Math.max(top, 0) + Math.min(bottom, innerHeight)) / 2;
  const tip = e.querySelector(".tip")?.getBoundingClientRect();
  return {
    place: [...document.querySelectorAll("*")].indexOf(e),
    what: e.tagName.toLowerCase(),
    part: e.closest("section")?.id ?? null,
    ring: outlined?.outlineColor ?? null,
    uncovered: e.contains(document.elementFromPoint(x, y)),
    tip: tip && [tip.left, tip.top, tip.width, tip.height],
    opened: [...document.querySelectorAll(".tip")].filter((t) => t.offsetWidth > 1).length,
  };
}"""
"""What is focused, and whether that can be seen."""
CONTROLS = {"a", "button", "summary"}


@dataclass(frozen=True)
class Walk:
    """All that a key goes to, until it leaves the page."""

    width: int
    stops: Sequence[dict[str, Any]]
    controls: int
    """How many there are."""


@pytest.fixture(scope="module")
def walks(browser: Browser, drill: Drill) -> dict[tuple[str, int], Walk]:
    ways = [("Tab", NARROWEST), ("Tab", WIDE), ("Shift+Tab", WIDE)]
    return {way: walked(browser, drill, *way) for way in (ways if IN_TEST_LONG else ways[:1])}


def walked(browser: Browser, drill: Drill, key: str, width: int) -> Walk:
    with opened(browser, drill.html, width=width, height=HEIGHT) as page:
        if key == "Shift+Tab":
            page.locator("summary").last.focus()
            page.keyboard.press("Tab")
        stops: list[dict[str, Any]] = []
        while True:
            page.keyboard.press(key)
            focused = page.evaluate(FOCUSED)
            if focused is None or (stops and focused["place"] == stops[0]["place"]):
                break
            stops.append(focused)
            assert len(stops) < 1000, "it never leaves the page"
        controls = page.locator(",".join(CONTROLS)).count()
    return Walk(width=width, stops=stops, controls=controls)


@pytest.mark.drawn
def test_the_keyboard_reaches_all_in_order_and_back(walks: dict[tuple[str, int], Walk]):
    for (key, _), walk in walks.items():
        places = [stop["place"] for stop in walk.stops]
        assert places == sorted(places, reverse=key == "Shift+Tab")
        assert sum(stop["what"] in CONTROLS for stop in walk.stops) == walk.controls > 60


@pytest.mark.drawn
def test_it_is_seen_where_the_keyboard_is(walks: dict[tuple[str, int], Walk]):
    for walk in walks.values():
        assert [stop for stop in walk.stops if not (stop["ring"] and stop["uncovered"])] == []


@pytest.mark.drawn
def test_the_keyboard_opens_one_reason_after_the_other_in_view(
    walks: dict[tuple[str, int], Walk],
):
    for walk in walks.values():
        marks = [stop for stop in walk.stops if stop["what"] == "button"]
        assert len(marks) > 40
        assert {mark["opened"] for mark in marks} == {1}
        for tip in (Box(*mark["tip"]) for mark in marks):
            assert tip.width > 40
            assert tip.left >= 0
            assert tip.left + tip.width <= walk.width
            assert 0 <= tip.top <= HEIGHT / 2 or tip.top + tip.height <= HEIGHT


@pytest.mark.parametrize(
    "width",
    [WIDE, NARROWEST, *(pytest.param(n, marks=pytest.mark.long) for n in (1160, 1000, NARROW))],
)
@pytest.mark.parametrize("name", ["drill", "long_drill"])
def test_each_mark_can_be_pointed_at(
    browser: Browser, request: pytest.FixtureRequest, name: str, width: int
):
    with opened(browser, request.getfixturevalue(name).html, width=width) as page:
        covered = page.locator(".mark, .why").evaluate_all(
            """(marks) => marks.filter((mark) => {
                 mark.scrollIntoView({block: "center"});
                 const {x, y, width, height} = mark.getBoundingClientRect();
                 return !mark.contains(document.elementFromPoint(x + width / 2, y + height / 2));
               }).map((mark) => mark.innerText)"""
        )
    assert covered == []


# Readable: what is told to those who listen, contrast, narrow screens, paper.


def test_every_chart_and_control_has_a_name(browser: Browser, drill: Drill):
    roles = {"image", "button", "link", "table", "region", "navigation", "DisclosureTriangle"}
    with opened(browser, drill.html) as page:
        session = page.context.new_cdp_session(page)
        nodes = session.send("Accessibility.getFullAXTree")["nodes"]
    found = [
        (node["role"]["value"], node["name"]["value"].strip())
        for node in nodes
        if not node["ignored"] and node["role"]["value"] in roles
    ]
    assert {role for role, _ in found} == roles
    assert [role for role, name in found if not name] == []


@pytest.mark.parametrize(
    ("scheme", "width"),
    [("light", NARROWEST), ("dark", WIDE), pytest.param("light", WIDE, marks=pytest.mark.long)],
)
def test_text_stands_out_from_what_is_behind_it(
    browser: Browser, drill: Drill, scheme: Scheme, width: int
):
    with opened(browser, drill.html, width=width, color_scheme=scheme) as page:
        found = text_contrasts(page, "body")
    assert len(found) > 25
    assert {text: ratio for text, ratio in found.items() if ratio < AA_TEXT} == {}


@pytest.mark.parametrize("width", [WIDE, NARROW, NARROWEST])
def test_nothing_sticks_out_to_the_side(browser: Browser, drill: Drill, width: int):
    with opened(browser, drill.html, width=width) as page:
        root = page.evaluate(
            "(({scrollWidth: w, clientWidth: c}) => [w, c])(document.scrollingElement)"
        )
    assert root == [width, width]


def test_all_is_unfolded_for_printing_and_folded_again(browser: Browser, drill: Drill):
    with opened(browser, drill.html) as page:
        folded = "document.querySelectorAll('details:not([open])').length"
        page.evaluate(f"addEventListener('beforeprint', () => {{ window.left = {folded}; }})")
        page.locator("summary").first.click()
        still_folded = page.evaluate(folded)
        assert still_folded > 0
        pdf = page.pdf(prefer_css_page_size=True)
        assert (page.evaluate("window.left"), page.evaluate(folded)) == (0, still_folded)
    assert 3 <= len(re.findall(rb"/Type\s*/Page\b", pdf)) <= 20
