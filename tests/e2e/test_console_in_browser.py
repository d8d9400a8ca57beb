"""The console in a real browser: a storm from its notice to its end, and every screen in every form.

Where there is no Chromium, `make browser` says how to get it.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Browser, Page, expect

from plimsoll_cli.console.drill_source import DrillSource
from plimsoll_cli.console.web import Access, served
from plimsoll_console.pages import url
from plimsoll_simulation.scenario.drill import read_drill
from tests.support.browsers import NARROWEST, launched, looked
from tests.support.consoles import looked_at
from tests.unit.console.test_screens import HOSTILE, hostile_pages, hostile_source

ROOT = Path(__file__).parents[2]
EXAMPLE = ROOT / "examples" / "all-spot-at-once.yaml"
STORM = "c/harbor/storm"
FORMS: dict[str, dict[str, Any]] = {
    "light": {"color_scheme": "light", "viewport": {"width": 1280, "height": 900}},
    "dark": {"color_scheme": "dark", "viewport": {"width": 1280, "height": 900}},
    "narrow": {"color_scheme": "light", "viewport": {"width": NARROWEST, "height": 800}},
}
pytestmark = pytest.mark.skipif(looked.returncode != 0, reason=looked.stderr.strip())


@pytest.fixture(scope="module")
def ended() -> Iterator[DrillSource]:
    """A drill that was played to its end."""
    with closing(DrillSource(read_drill(EXAMPLE), speed=1000)) as source:
        source.start()
        source.wait()
        yield source


@pytest.fixture(scope="module")
def access(ended: DrillSource) -> Iterator[Access]:
    with served(ended) as access:
        yield access


@pytest.fixture(scope="module")
def browser(access: Access) -> Iterator[Browser]:
    """A browser. The drill comes first, because Playwright leaves an asyncio loop running."""
    with launched() as chromium:
        yield chromium


def screens(source: DrillSource) -> dict[str, str]:
    """Every screen, by name."""
    state = source.state("harbor")
    assert state is not None
    assert state.reports
    return {
        "fleet": "",
        "cluster": "c/harbor",
        "queues": "c/harbor/queues",
        "storm": STORM,
        "replay": f"{STORM}?at=84",
        "workload": url("c", "harbor", "w", "StatefulSet", "shop", "cart"),
        "interruptions": "c/harbor/interruptions",
        "interruption": url("c", "harbor", "interruptions", state.reports[0].interruption),
        "rehearsals": "c/harbor/rehearsals",
    }


def violations(page: Page) -> list[tuple[str, str]]:
    found = Axe().run(page).response["violations"]
    return [(each["id"], node["html"][:200]) for each in found for node in each["nodes"]]


def assert_screens_are_sound(browser: Browser, access: Access, pages: dict[str, str], form: str):
    with looked_at(browser, access, **FORMS[form]) as page:
        for name, path in pages.items():
            page.goto(f"http://127.0.0.1:{access.port}/{path}")
            assert violations(page) == [], name
            width = page.evaluate("document.documentElement.scrollWidth")
            assert width <= FORMS[form]["viewport"]["width"], name


def test_the_storm_is_accessible_and_fits(browser: Browser, access: Access, ended: DrillSource):
    storm = {"replay": screens(ended)["replay"]}
    for form in ("dark", "narrow"):  # all screens in every form take too long for every change
        assert_screens_are_sound(browser, access, storm, form)


@pytest.mark.long
@pytest.mark.parametrize("form", FORMS)
def test_every_screen_is_accessible_and_fits(
    browser: Browser, access: Access, ended: DrillSource, form: str
):
    assert_screens_are_sound(browser, access, screens(ended), form)


@pytest.mark.long
@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_names_are_words_and_fit_on_a_narrow_screen(browser: Browser, name: str):
    with (
        served(hostile_source(name)) as access,
        looked_at(browser, access, **FORMS["narrow"]) as page,
    ):
        for path in hostile_pages(name):
            page.goto(f"http://127.0.0.1:{access.port}/{path}")
            assert violations(page) == [], path
            assert page.evaluate("document.documentElement.scrollWidth") <= NARROWEST, path
            assert page.title() != "run"


def watched(browser: Browser, speed: float) -> None:
    """Watch a storm from its notice to its end, with the focus on a row."""
    with (
        closing(DrillSource(read_drill(EXAMPLE), speed=speed)) as source,
        served(source) as access,
        looked_at(browser, access) as page,
    ):
        source.start()
        page.goto(f"http://127.0.0.1:{access.port}/{STORM}")
        live = page.locator("#live")
        expect(page.get_by_text("live, frame")).to_be_visible(timeout=15_000)
        row = page.get_by_role("link", name="shop/web")
        row.focus()
        before = page.locator("tbody tr").first.inner_text()
        expect(page.get_by_text("ended, last seen")).to_be_visible(timeout=60_000)
        assert page.locator("tbody tr").first.inner_text() != before  # rows were sorted anew
        assert page.evaluate("document.activeElement.textContent") == "shop/web"
        expect(page.locator("h1")).to_have_text("All 15 pods are safe. Every floor held.")
        assert live.get_attribute("hx-get") is None  # nothing more to come


def test_a_storm_is_watched_to_its_end_and_focus_stays_on_its_row(browser: Browser):
    watched(browser, speed=30)


@pytest.mark.long
def test_a_storm_at_the_usual_speed_is_watched_to_its_end(browser: Browser):
    watched(browser, speed=10)


def test_the_slider_replays_the_storm(browser: Browser, access: Access):
    with looked_at(browser, access) as page:
        page.goto(f"http://127.0.0.1:{access.port}/{STORM}")
        page.locator("#at").fill("30")
        expect(page.get_by_text("replay, 0:30 after the notice")).to_be_visible()
        assert page.url.endswith("?at=30")
        expect(page.locator("h1")).to_contain_text("0 of 15 pods are safe")


def test_a_storm_is_replayed_without_script(browser: Browser, access: Access):
    with looked_at(browser, access, java_script_enabled=False) as page:
        page.goto(f"http://127.0.0.1:{access.port}/{STORM}")
        page.locator("#at").fill("30")
        page.get_by_role("button", name="Show").click()
        expect(page.get_by_text("replay, 0:30 after the notice")).to_be_visible()
