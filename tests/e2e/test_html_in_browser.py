"""The page about a drill in a real browser, used as its readers use it.

Playwright drives the Chromium of the machine, never one of its own; where there is none,
`make browser` says how to get it. Whatever is done to the page, no request leaves it and nothing is
complained of: `opened` holds every test to that.
"""

from __future__ import annotations

import json
import re
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any, Literal, NamedTuple

import pytest
from click.testing import CliRunner
from playwright.sync_api import Browser, Locator, Page, sync_playwright

from plimsoll_cli import main

ROOT = Path(__file__).parents[2]
EXAMPLE = ROOT / "examples" / "all-spot-at-once.yaml"
LONG = ROOT / "examples" / "slow-and-throttled.yaml"
RESPONDERS = ("plimsoll", "drain", "none")
WIDE, NARROW, NARROWEST = 1400, 500, 320  # the last is 1280 at a zoom of 400 %, as WCAG 1.4.10 asks
HEIGHT = 800
AA_TEXT, AA_GRAPHICS = 4.5, 3.0  # WCAG 1.4.3 and 1.4.11
type Scheme = Literal["light", "dark"]
SCHEMES: tuple[Scheme, ...] = ("light", "dark")
type Colour = tuple[float, float, float]
QUIET = (
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
)

looked = subprocess.run(
    [ROOT / "infra" / "local" / "browser.sh", "--path"], capture_output=True, text=True, check=False
)
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
    """A browser with a profile of its own.

    Its sandbox is off, as Playwright has it: root cannot use it, nor can many a container, and the
    page is ours. The drills come first, because Playwright leaves an asyncio loop running.
    """
    with sync_playwright() as playwright:
        chromium = playwright.chromium.launch(executable_path=looked.stdout.strip(), args=QUIET)
        yield chromium
        chromium.close()


@contextmanager
def opened(
    browser: Browser, drill: Drill, *, width: int = WIDE, height: int = HEIGHT, **options: Any
) -> Iterator[Page]:
    asked: list[str] = []
    complaints: list[str] = []
    with browser.new_context(viewport={"width": width, "height": height}, **options) as context:
        context.on("request", lambda request: asked.append(request.url))
        context.on("console", lambda message: complaints.append(message.text))
        context.on("weberror", lambda error: complaints.append(str(error.error)))
        page = context.new_page()
        page.goto(drill.html.as_uri())
        yield page
        assert asked == [drill.html.as_uri()]
        assert complaints == []  # an error in a script, or something that the page's policy refused


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


def row_of(page: Page, node: str) -> Locator:
    heading = page.get_by_role("heading", name=f"Node {node} ")
    return page.get_by_role("article").filter(has=heading)


def workload_plots(page: Page, name: str) -> list[Locator]:
    """Return one plot for each responder, in their order."""
    names = (re.compile(rf"^Ready pods of \w+ \S+\/{name} with {who} ") for who in RESPONDERS)
    return [page.get_by_role("img", name=each) for each in names]


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
    with opened(browser, drill) as page:
        for name in names:
            boxes = [box(plot) for plot in workload_plots(page, name)]
            assert_side_by_side(boxes)


def test_every_node_with_notice_has_a_timeline_with_each_responder_side_by_side(
    browser: Browser, drill: Drill
):
    names = [row["name"] for row in drill.reports[0]["nodes"]]
    assert len(names) == 4
    with opened(browser, drill) as page:
        for name in names:
            row = row_of(page, name)
            plots = row.get_by_role("img", name=f"Pods on node {name}: ")
            assert plots.count() == len(RESPONDERS)
            assert_side_by_side([box(plot) for plot in plots.all()])
            assert row.locator(".mark.notice").count() == len(RESPONDERS)


def test_on_a_narrow_screen_responders_stand_below_each_other_by_name(
    browser: Browser, drill: Drill
):
    with opened(browser, drill, width=NARROW) as page:
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
    with opened(browser, drill) as page:
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
    reason = next(
        r for r in drill.reports[0]["reports"][0]["reasons"] if "release Pod shop/api" in r
    )
    with opened(browser, drill) as page:
        mark = page.locator("#workloads").get_by_role("button", name=reason)
        tip = mark.locator(".tip")
        assert box(tip).width <= 1
        mark.hover()
        assert reason in tip.inner_text()
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


def test_the_reasons_of_a_node_stand_beside_it(browser: Browser, drill: Drill):
    node = drill.reports[0]["nodes"][0]
    told = next(
        report["reasons"]
        for report in drill.reports[0]["reports"]
        if report["interruption"].startswith(node["instance"])
    )
    with opened(browser, drill) as page:
        why = row_of(page, node["name"]).locator("button.why")
        why.hover()
        assert box(why.locator(".tip")).width > 100
        assert set(why.locator(".line").all_inner_texts()[:-1]) <= set(told)


def test_reasons_open_without_any_script(browser: Browser, drill: Drill):
    with opened(browser, drill, java_script_enabled=False) as page:
        mark = page.locator("#workloads .mark").first
        mark.hover()
        assert box(mark.locator(".tip")).width > 100


FOCUSED = """() => {
  const e = document.activeElement;
  if (e === document.body) return null;
  const outlined = [e, ...e.querySelectorAll(".sign")].map((o) => getComputedStyle(o))
    .find((s) => s.outlineStyle !== "none" && parseFloat(s.outlineWidth) >= 2);
  const {x, y, width, height} = e.getBoundingClientRect();
  const tip = e.querySelector(".tip")?.getBoundingClientRect();
  return {
    place: [...document.querySelectorAll("*")].indexOf(e),
    what: e.tagName.toLowerCase(),
    part: e.closest("section")?.id ?? null,
    ring: outlined?.outlineColor ?? null,
    uncovered: e.contains(document.elementFromPoint(x + width / 2, y + height / 2)),
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
    ways = [("Tab", WIDE), ("Shift+Tab", WIDE), ("Tab", NARROWEST)]
    return {way: walked(browser, drill, *way) for way in ways}


def walked(browser: Browser, drill: Drill, key: str, width: int) -> Walk:
    with opened(browser, drill, width=width, height=HEIGHT) as page:
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


def test_the_keyboard_reaches_all_in_order_and_back(walks: dict[tuple[str, int], Walk]):
    for (key, _), walk in walks.items():
        places = [stop["place"] for stop in walk.stops]
        assert places == sorted(places, reverse=key == "Shift+Tab")
        assert sum(stop["what"] in CONTROLS for stop in walk.stops) == walk.controls > 60


def test_it_is_seen_where_the_keyboard_is(walks: dict[tuple[str, int], Walk]):
    for walk in walks.values():
        assert [stop for stop in walk.stops if not (stop["ring"] and stop["uncovered"])] == []


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


def test_a_link_goes_to_its_part_and_escape_puts_away_what_focus_opened(
    browser: Browser, drill: Drill
):
    with opened(browser, drill) as page:
        page.get_by_role("link", name="Nodes").press("Enter")
        page.keyboard.press("Tab")
        before = page.evaluate(FOCUSED)
        names = box(page.locator(".columns"))
        assert (
            box(page.get_by_role("heading", name="Nodes", exact=True)).top
            > names.top + names.height
        )
        page.keyboard.press("Escape")
        after = page.evaluate(FOCUSED)
        assert (before["part"], before["opened"]) == ("nodes", 1)
        assert (after["place"], after["opened"]) == (before["place"], 0)
        page.keyboard.press("Tab")
        assert page.evaluate(FOCUSED)["opened"] == 1


def test_a_list_folds_and_unfolds_with_the_keyboard(browser: Browser, long_drill: Drill):
    with opened(browser, long_drill) as page:
        done = page.locator("#done details")
        summary, rows = done.locator("summary"), done.get_by_role("row")
        assert rows.count() == 0
        summary.press("Enter")
        assert rows.count() > 40
        summary.press("Space")
        assert rows.count() == 0


@pytest.mark.parametrize("width", [WIDE, 1160, 1000, NARROW, NARROWEST])
@pytest.mark.parametrize("name", ["drill", "long_drill"])
def test_each_mark_can_be_pointed_at(
    browser: Browser, request: pytest.FixtureRequest, name: str, width: int
):
    with opened(browser, request.getfixturevalue(name), width=width) as page:
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
    with opened(browser, drill) as page:
        session = page.context.new_cdp_session(page)
        nodes = session.send("Accessibility.getFullAXTree")["nodes"]
    found = [
        (node["role"]["value"], node["name"]["value"].strip())
        for node in nodes
        if not node["ignored"] and node["role"]["value"] in roles
    ]
    assert {role for role, _ in found} == roles
    assert [role for role, name in found if not name] == []


def test_headings_skip_no_level(browser: Browser, drill: Drill):
    with opened(browser, drill) as page:
        levels = page.get_by_role("heading").evaluate_all("(all) => all.map((e) => +e.tagName[1])")
    assert levels[0] == 1
    assert levels.count(1) == 1
    assert all(deeper - level <= 1 for level, deeper in pairwise(levels))


TEXTS = """(root) => {
  const known = new Map();  // a page has far fewer elements than samples
  const once = (e, key, make) => {
    const own = known.get(e) ?? known.set(e, {}).get(e);
    return own[key] ??= make();
  };
  const opacity = (e) => e ? once(e, "opacity", () =>
    getComputedStyle(e).opacity * opacity(e.parentElement)) : 1;
  const ground = (e) => once(e, "ground", () => {
    const style = getComputedStyle(e);
    if (!(e instanceof SVGElement)) return style.backgroundColor;
    if (e instanceof SVGSVGElement) return "rgba(0, 0, 0, 0)";
    const [, pattern] = style.fill.match(/url\\("(#.+)"\\)/) ?? [];
    if (pattern) return getComputedStyle(document.querySelector(`${pattern} path`)).stroke;
    return style.fill === "none" ? style.stroke : style.fill;
  });
  const shown = (node) => node instanceof Text || node.getBoundingClientRect().width > 1
    ? NodeFilter.FILTER_ACCEPT : NodeFilter.FILTER_REJECT;
  const walker = document.createTreeWalker(
    root, NodeFilter.SHOW_ELEMENT | NodeFilter.SHOW_TEXT, shown);
  const kind = (e) => e ? `${kind(e.parentElement)}>${e.tagName}.${e.className}` : "";
  const counted = new Map(), found = new Map();
  for (let node; (node = walker.nextNode()); ) {
    if (!(node instanceof Text) || !node.data.trim()) continue;
    const own = node.parentElement, like = kind(own), before = counted.get(like) ?? 0;
    if (before === 8) continue;  // enough of a kind
    counted.set(like, before + 1);
    const {top, bottom} = own.getBoundingClientRect();
    if (top < 60 || bottom > innerHeight) own.scrollIntoView();
    const range = document.createRange();
    range.selectNodeContents(node);
    for (const {x, y, width, height} of range.getClientRects())
      for (const share of [0.05, 0.95]) {
        const stack = document.elementsFromPoint(x + width * share, y + height / 2);
        const at = stack.indexOf(own);
        if (at < 0) continue;  // scrolled out of a table
        const grounds = stack.slice(at).reverse().map((e) => [ground(e), opacity(e)]);
        const seen = [getComputedStyle(own).color, opacity(own), grounds];
        found.set(JSON.stringify(seen), [node.data.trim(), ...seen]);
      }
  }
  return [...found.values()];
}"""
"""Some texts of each kind, with colour and opacity, and all that is painted below, lowest first.

A filling with a pattern counts as if it were all of the pattern's colour.
"""


def parsed(colour: str) -> tuple[Colour, float]:
    red, green, blue, *alpha = (float(part) for part in re.findall(r"[\d.]+", colour))
    return (red, green, blue), alpha[0] if alpha else 1.0


def painted(colour: str, opacity: float, ground: Colour) -> Colour:
    (red, green, blue), alpha = parsed(colour)
    share = alpha * opacity
    return (
        share * red + (1 - share) * ground[0],
        share * green + (1 - share) * ground[1],
        share * blue + (1 - share) * ground[2],
    )


def contrast(one: Colour, other: Colour) -> float:
    """Source: https://www.w3.org/TR/WCAG22/#dfn-contrast-ratio"""
    darker, lighter = sorted((luminance(one), luminance(other)))
    return (lighter + 0.05) / (darker + 0.05)


def luminance(colour: Colour) -> float:
    red, green, blue = (
        share / 12.92 if share <= 0.04045 else ((share + 0.055) / 1.055) ** 2.4
        for share in (part / 255 for part in colour)
    )
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def text_contrasts(page: Page, root: str) -> dict[str, float]:
    found: dict[str, float] = {}
    for text, colour, opacity, grounds in page.locator(root).first.evaluate(TEXTS):
        ground = (255.0, 255.0, 255.0)
        for layer, share in grounds:
            ground = painted(layer, share, ground)
        ratio = contrast(painted(colour, opacity, ground), ground)
        found[text] = min(ratio, found.get(text, ratio))
    return found


@pytest.mark.parametrize(
    ("scheme", "width"), [("light", WIDE), ("dark", WIDE), ("light", NARROWEST)]
)
def test_text_stands_out_from_what_is_behind_it(
    browser: Browser, drill: Drill, scheme: Scheme, width: int
):
    with opened(browser, drill, width=width, color_scheme=scheme) as page:
        found = text_contrasts(page, "body")
    assert len(found) > 25
    assert {text: ratio for text, ratio in found.items() if ratio < AA_TEXT} == {}


@pytest.mark.parametrize("scheme", SCHEMES)
def test_opened_reasons_stand_out_too(browser: Browser, drill: Drill, scheme: Scheme):
    with opened(browser, drill, color_scheme=scheme) as page:
        for opener in (".mark", ".why"):
            page.locator(opener).first.focus()
            found = text_contrasts(page, f"{opener}:focus .tip")
            assert found
            assert min(found.values()) >= AA_TEXT


@pytest.mark.parametrize("scheme", SCHEMES)
def test_lines_signs_and_focus_stand_out_from_the_page(
    browser: Browser, drill: Drill, scheme: Scheme
):
    lines = (".ready", ".replicas", ".floor", ".short", ".beneath", ".pods", ".closed", ".away")
    with opened(browser, drill, color_scheme=scheme) as page:
        (paper, _) = parsed(page.evaluate("getComputedStyle(document.body).backgroundColor"))
        drawn = {
            line: page.locator(f".plot {line}").first.evaluate("(e) => getComputedStyle(e).stroke")
            for line in lines
        }
        for sign in page.locator(".legend .sign").all():
            style = "(e) => getComputedStyle(e).borderTopColor"
            drawn[sign.get_attribute("class") or ""] = sign.evaluate(style)
        page.keyboard.press("Tab")
        drawn["focus"] = page.evaluate(FOCUSED)["ring"]
    assert len(drawn) == 18
    found = {what: contrast(painted(colour, 1.0, paper), paper) for what, colour in drawn.items()}
    assert {what: ratio for what, ratio in found.items() if ratio < AA_GRAPHICS} == {}


def test_it_is_light_or_dark_as_the_reader_wishes(browser: Browser, drill: Drill):
    shades = {}
    for scheme in SCHEMES:
        with opened(browser, drill, color_scheme=scheme) as page:
            colours = ("backgroundColor", "color")
            shades[scheme] = [
                luminance(parsed(page.evaluate(f"getComputedStyle(document.body).{name}"))[0])
                for name in colours
            ]
    (paper, ink), (dark_paper, bright_ink) = shades["light"], shades["dark"]
    assert paper > 0.9
    assert ink < 0.1
    assert dark_paper < 0.1
    assert bright_ink > 0.7


@pytest.mark.parametrize("width", [WIDE, NARROW, NARROWEST])
def test_nothing_sticks_out_to_the_side(browser: Browser, drill: Drill, width: int):
    with opened(browser, drill, width=width) as page:
        root = page.evaluate(
            "(({scrollWidth: w, clientWidth: c}) => [w, c])(document.scrollingElement)"
        )
    assert root == [width, width]


def test_all_is_unfolded_for_printing_and_folded_again(browser: Browser, drill: Drill):
    with opened(browser, drill) as page:
        folded = "document.querySelectorAll('details:not([open])').length"
        page.evaluate(f"addEventListener('beforeprint', () => {{ window.left = {folded}; }})")
        page.locator("summary").first.click()
        still_folded = page.evaluate(folded)
        assert still_folded > 0
        pdf = page.pdf(prefer_css_page_size=True)
        assert (page.evaluate("window.left"), page.evaluate(folded)) == (0, still_folded)
    assert 3 <= len(re.findall(rb"/Type\s*/Page\b", pdf)) <= 20
